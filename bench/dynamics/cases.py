"""The cases of bench/dynamics/dynamics: small experiments of each kind, one half tuned, the other half held out.

Tune a policy on the tuned half only. The held-out half has the same kinds of cases with other algorithms and numbers,
and shows whether the policy also works on cases for which nobody tuned it. Times of jobs are in ms. A burst is given as
the time for which it fills its link.
"""
from pathlib import Path
from typing import NamedTuple

TRACES = Path(__file__).resolve().parent.parent.parent / "examples" / "traces"
ALGORITHMS = ["reno", "cubic", "dctcp", "dcqcn", "swift"]
# By rate in Gbps: delay in us, MTU in bytes, buffer in kB (DCQCN: the second), kmin in kB (DCTCP), kmin and kmax in kB
# (DCQCN), payload's share of the link
LINKS = {1: (10, 1500, (75, 250), 30, (20, 60), 0.939), 10: (1, 9000, (500, 2000), 60, (40, 160), 0.988),
         50: (2, 9000, (1000, 4000), 200, (200, 800), 0.988)}

# Changes of the parameters of policy turns that `dynamics --ablation` compares.
ABLATION = ["test_rate = 1", "test_packets = 2", "test_queue = 7", "max_test = 0.01", "max_test = 1",
            "hold_rate = 0.125", "low_samples = 1", "cautious_hold = 1", "steady_failures = 1", "steady_failures = 100",
            "noise_margin = 1", "noise_margin = 4", "overtaking_gain = 0", "overtaking_gain = 2", "stuck_wait = 0",
            "stuck_wait = 10", "stuck_spread = 100", "stuck_period = 0", "overtaking_pause = 0",
            "short_round_trips = 0"]


class Job(NamedTuple):
    period: float | None  # time of an iteration that has the link to itself, in ms; None: no best possible time is known
    burst: float | None  # part of this time for which the job fills the link
    keys: dict  # of [[job]]


class Size(NamedTuple):
    """The bytes that a link carries in `time`, times `share`."""
    time: float
    share: float = 1.0


class Case(NamedTuple):
    name: str
    text: str  # the experiment file
    period: float | None  # of all jobs, in ms, if the periods are equal and all jobs share one link
    bursts: float | None  # sum of the jobs' bursts, below which no mean iteration can be
    learned: bool  # the transport learns the iterations from the traffic


def job(compute, burst, **keys):
    return Job(compute + burst, burst, {"compute": f"{compute} ms", "communicate": Size(burst)} | keys)


def other(**keys):
    """A job of whose iterations no best possible time is known."""
    return Job(None, None, keys)


def phases(*times, overlap=False):
    """A job with several bursts: each item has the times of computation and of the burst after it. With `overlap`, the
    job computes during each burst but the last."""
    parts = []
    for number, (compute, burst) in enumerate(times, 1):
        early = {"overlap": True} if overlap and number < len(times) else {}
        parts += [{"compute": f"{compute} ms"}, {"communicate": Size(burst)} | early]
    return other(phases=parts)


def leaver(compute, burst, iterations):
    """A job that ends early: after `iterations`, it computes for longer than the run lasts."""
    return job(compute, burst, iterations=iterations, change={"iteration": iterations, "compute_scale": 1000})


def ring(compute, burst, ranks=4):
    """A data-parallel job. On a ring, each rank sends its gradients 2 (ranks - 1) / ranks times."""
    size = Size(burst, ranks / (2 * (ranks - 1)))
    return Job(compute + burst, burst, {"compute": f"{compute} ms", "parallel": {"data": ranks}, "gradients": size})


def pipeline(compute, burst, activations):
    return other(compute=f"{compute} ms", parallel={"data": 2, "pipeline": 2}, gradients=Size(burst),
                 activations=f"{activations} kB", micro_batches=4)


def toml(value, payload):
    """Returns a value of a TOML file. `payload` is the number of bytes that a link carries in one ms."""
    if isinstance(value, Size):
        return f'"{value.time * payload * value.share:.0f} B"'
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(item, payload)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(toml(item, payload) for item in value) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


def case(label, cc, jobs, iterations=30, rate=1, delay=None, buffer=None, topology=None, learned=False):
    """An experiment on one link, or with `topology` (keys of a leaf-spine topology) on several switches."""
    usual_delay, mtu, buffers, step, ramp, share = LINKS[rate]
    network = {"kind": "leaf-spine", "host_rate": f"{rate} Gbps"} | topology if topology else {"rate": f"{rate} Gbps"}
    network |= {"delay": f"{delay or usual_delay} us", "mtu": mtu, "buffer": f"{buffer or buffers[cc == 'dcqcn']} kB"}
    if cc == "dctcp":
        network["ecn"] = {"kmin": f"{step} kB"}
    if cc == "dcqcn":
        network["ecn"] = {"kmin": f"{ramp[0]} kB", "kmax": f"{ramp[1]} kB", "pmax": 0.1}
    tables = [("", {"name": f"{label}-{cc}", "iterations": iterations, "cc": cc})]
    tables += [("[mltcp]", {"iterations": "learned"})] if learned else []
    tables += [("[topology]" if topology else "[bottleneck]", network)]
    for name, (period, _, keys) in zip("abcdefgh", jobs):
        tables += [("[[job]]", {"name": name, "start_jitter": f"{min(10, 0.15 * (period or 100)):.3g} ms"} | keys)]
    # If no packet is ever late, bulk traffic at the rate of the link can keep a queue exactly full, so that other packets
    # are always dropped (Floyd and Jacobson, Traffic phase effects in packet-switched gateways, CCR 1991).
    if any(keys.get("unaware") for _, _, keys in jobs):
        tables += [("[host_model]", {"look": "1 us", "late": {"least": "0 us", "mean": "10 us"}})]
    lines = [line for head, keys in tables
             for line in (head, *(f"{key} = {toml(value, rate * 1e6 / 8 * share)}" for key, value in keys.items()))]
    periods = [job.period for job in jobs]
    alike = None not in periods and max(periods) < 1.001 * min(periods)
    known = (periods[0], sum(job.burst for job in jobs)) if alike else (None, None)
    return Case(f"{label}-{cc}", "\n".join(lines).lstrip() + "\n", *known, learned)


def equal(label, cc, compute=150, burst=115, number=2, iterations=30, rate=1, delay=None, buffer=None, learned=False, **keys):
    return case(label, cc, number * [job(compute, burst, **keys)], iterations, rate, delay, buffer, learned=learned)


def mix(label, cc, *times, iterations=36):
    return case(label, cc, [job(*time) for time in times], iterations)


def short(label, cc, trips, delay):
    """A pair whose bursts last `trips` round trips (four hops). A job computes for a third longer than it sends."""
    burst = trips * 4 * delay / 1000
    return equal(label, cc, round(burst * 4 / 3, 3), burst, iterations=100, delay=delay, buffer=250)


def racks(label, cc, jobs, leaves=4, spines=1, hosts=None, uplink=10):
    """Jobs on racks of 10 Gbps with `hosts` each. By default, each job has one host in each rack, so that the jobs share
    the uplinks. The jobs send a little less than their network cards could: a host's own queue drops and marks nothing."""
    jobs = [at._replace(keys={"rate": "9.8 Gbps", "hosts": [i + leaf * len(jobs) for leaf in range(leaves)]} | at.keys)
            for i, at in enumerate(jobs)]
    topology = {"leaves": leaves, "spines": spines, "hosts_per_leaf": hosts or len(jobs), "uplink_rate": f"{uplink} Gbps"}
    return case(label, cc, jobs, 20, 10, topology=topology, buffer=None if cc == "dcqcn" else 150)


def cluster(*times):
    """Jobs on 24 hosts, six in a rack. A hash selects their paths, so that some of them share links."""
    places = [[0, 6, 12], [1, 7, 13, 18], [2, 8], [3, 14, 19], [9, 15], [4, 10, 16, 20], [5, 21]]
    return [other(compute=f"{compute} ms", communicate=Size(burst), hosts=hosts)
            for hosts, (compute, burst) in zip(places, times)]


BUCKETS = phases((140, 17), (25, 34), (35, 30), (30, 17), overlap=True)
OTHER_BUCKETS = phases((120, 20), (30, 25), (30, 20), overlap=True)
REPLAY = other(replay=[str(TRACES / f"data-parallel.{rank}.json") for rank in (0, 1)])
RESNET = other(trace=str(TRACES / "resnet-like.txt"), workers=2)
DLRM = other(trace=str(TRACES / "dlrm-like.txt"), workers=2, network="inter-server")
PROFILE = other(profile=str(TRACES / "bert-like.csv"))
BULK = other(communicate=Size(170), unaware=True)
MICE = other(compute="10 ms", communicate=Size(0.4), unaware=True, iterations=500)

# By kind: the tuned cases, the held-out cases
CASES = {
    "pair": ([equal("pair", cc) for cc in ALGORITHMS], [equal("pair75", cc, 200, 120) for cc in ALGORITHMS]),
    "10 Gbps": ([equal("g10-pair", cc, 75, 56.25, rate=10) for cc in ("dctcp", "dcqcn")],
                [equal("g10-pair", cc, 60, 45, rate=10) for cc in ("cubic", "swift")]),
    "50 Gbps": ([equal("g50-pair", "reno", 75, 56.25, rate=50, jitter="0.375 ms")],
                [equal("g50-pair", "dctcp", 60, 45, rate=50, jitter="0.3 ms")]),
    "flows": ([equal("flows4", "reno", flows=4)], [equal("flows4", "dcqcn", flows=4)]),
    "jitter": ([equal("pair-j2", "reno", jitter="3 ms"), equal("pair-j5", "dctcp", jitter="7.5 ms")],
               [equal("pair-j2", "swift", jitter="3 ms"), equal("pair-j5", "reno", jitter="7.5 ms")]),
    "three": ([equal("three90", "dctcp", 210, 90, 3), equal("three87", "cubic", 220, 90, 3)],
              [equal("three90", "reno", 175, 75, 3), equal("three87", "swift", 176, 72, 3)]),
    "six": ([equal("six86", cc, 257, 43, 6) for cc in ("reno", "dcqcn")],
            [equal("six88", cc, 262, 45, 6) for cc in ("cubic", "dctcp")]),
    "periods 3% apart": ([mix("p3", "reno", (150, 115), (158, 115))], [mix("p3", "dcqcn", (160, 110), (168, 110))]),
    "periods 10% apart": ([mix("p10", "swift", (150, 115), (176.5, 115))], [mix("p10", "cubic", (120, 80), (140, 80))]),
    "periods 15% apart": ([mix("p15", cc, (55, 45), (70, 45), iterations=60) for cc in ("reno", "dctcp")],
                          [mix("p15", cc, (70, 50), (88, 50), iterations=60) for cc in ("cubic", "dcqcn")]),
    "periods 20% apart": ([mix("p20", cc, (150, 115), (203, 115)) for cc in ("reno", "dcqcn", "swift")],
                          [mix("p20-160", cc, (100, 60), (132, 60)) for cc in ("cubic", "dctcp", "reno")]),
    "sizes": ([mix("size", "reno", (150, 115), (250, 60)), mix("size-equal", "cubic", (200, 65), (120, 145))],
              [mix("size", "swift", (120, 95), (210, 50)), mix("size-equal", "dcqcn", (190, 50), (110, 130))]),
    "no fit": (
        [equal("nofit105", "dctcp", 104, 115), *(equal("nofit117", cc, 60, 85) for cc in ("reno", "dcqcn")),
         equal("nofit150", "dctcp", 40, 120)],
        [equal("nofit105", "reno", 86, 95), *(equal("nofit117", cc, 71, 100) for cc in ("cubic", "swift")),
         equal("nofit150", "dcqcn", 30, 90)]),
    "no fit, unequal periods": (
        [mix("nofit-p20", "reno", (60, 85), (90, 85)), mix("nofit-p3", "cubic", (60, 85), (64.4, 85))],
        [mix("nofit-p20", "dctcp", (70, 95), (103, 95)), mix("nofit-p3", "swift", (70, 95), (75, 95))]),
    "mix": (
        [mix("mix4", "reno", (150, 50), (210, 60), (330, 90), (97, 25)),
         mix("mix6", "reno", (150, 30), (210, 40), (330, 60), (97, 15), (121, 20), (400, 80))],
        [mix("mix4", "dcqcn", (120, 40), (180, 45), (260, 70), (310, 80)),
         mix("mix6", "swift", (110, 20), (170, 35), (230, 40), (290, 55), (350, 50), (410, 75))]),
    "three and four periods": (
        [*(mix("periods3", cc, (135, 50), (150, 55), (194, 71)) for cc in ("reno", "dcqcn", "swift")),
         mix("periods4", "reno", (80, 20), (96, 24), (120, 30), (152, 38), iterations=60)],
        [*(mix("periods3b", cc, (110, 42), (128, 45), (160, 60)) for cc in ("cubic", "dctcp", "reno")),
         mix("periods4", "swift", (90, 24), (115, 26), (140, 36), (170, 44), iterations=60)]),
    "bursts that differ": ([mix("bursts2", cc, (105, 45), (126, 104)) for cc in ("reno", "dctcp")],
                           [mix("bursts2", cc, (100, 35), (130, 90)) for cc in ("swift", "dcqcn")]),
    "far": ([equal("far500", "reno", delay=500, buffer=250)], [equal("far500", "cubic", delay=500, buffer=250)]),
    "short": (
        [short("short4rtt", "reno", 4, 500), short("short10rtt", "dctcp", 10, 500), short("short30rtt", "dcqcn", 30, 200),
         equal("short-10us", "reno", 6, 4.5, iterations=150)],
        [short("short4rtt", "dcqcn", 4, 400), short("short10rtt", "cubic", 10, 500), short("short30rtt", "swift", 30, 200),
         equal("short-10us", "dctcp", 5, 3.5, iterations=150)]),
    "phases": (
        [case("phases2", "reno", 2 * [phases((60, 25), (60, 50))]), case("buckets", "dctcp", 2 * [BUCKETS])],
        [case("phases2", "swift", 2 * [phases((50, 20), (70, 45))]), case("buckets", "dcqcn", 2 * [OTHER_BUCKETS])]),
    "rings": ([racks("rings", "reno", 2 * [ring(60, 37)]), racks("rings-shift", "dctcp", 2 * [job(50, 36)])],
              [racks("rings", "dctcp", 2 * [ring(50, 30)]), racks("rings-shift", "swift", 3 * [job(60, 24)])]),
    "pipelines": ([racks("pipelines", "reno", 2 * [pipeline(40, 24, 50)])],
                  [racks("pipelines", "dcqcn", 2 * [pipeline(45, 28, 200)])]),
    "cluster": (
        [racks("cluster16", "reno", 4 * [other(compute="60 ms", communicate=Size(20))], uplink=20),
         racks("cluster24", "dctcp", cluster(*7 * [(45, 25)]), spines=3, hosts=6)],
        [racks("cluster16", "swift", 4 * [other(compute="50 ms", communicate=Size(17))], uplink=20),
         racks("cluster24", "dcqcn", cluster(*2 * [(45, 25), (60, 40), (30, 16)], (45, 25)), spines=3, hosts=6)]),
    "traces": (
        [case("traces", "reno", [job(245, 53), RESNET, DLRM]), case("profiles", "dctcp", 2 * [PROFILE])],
        [racks("replays", "dctcp", 2 * [REPLAY], leaves=2), case("profiles", "cubic", 2 * [PROFILE])]),
    "legacy": (
        [case("legacy", cc, 2 * [job(250, 61)] + [BULK]) for cc in ("reno", "dcqcn")],
        [case("legacy", "cubic", 2 * [job(200, 70)] + [BULK]), case("legacy-short", "dctcp", 2 * [job(200, 70)] + [MICE])]),
    "newcomer": ([case("newcomer", "reno", 2 * [job(200, 85)] + [job(200, 85, start="3 s")])],
                 [case("newcomer", "dctcp", [job(150, 115), job(150, 115, start="2.4 s")])]),
    "leaver": ([case("leaver", "dcqcn", 2 * [job(210, 90)] + [leaver(210, 90, 14)])],
               [case("leaver", "reno", 2 * [job(180, 77)] + [leaver(180, 77, 14)])]),
    "learned": ([equal("learned", "reno", learned=True), case("learned-buckets", "dctcp", 2 * [BUCKETS], learned=True)],
                [equal("learned", "cubic", 200, 120, learned=True),
                 case("learned-buckets", "swift", 2 * [OTHER_BUCKETS], learned=True)]),
}
