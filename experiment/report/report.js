// Charts of the report, drawn with uPlot from the JSON block of the page: the use of the link by job (stacked), in
// two windows and over the whole run, and lines over iterations. Each .chart element says by data-kind what it shows.
"use strict";

(() => {
  const data = JSON.parse(document.getElementById("report-data").textContent);
  const COLOURS = 8;  // --job-0 ... of report.css
  const RATE_UNITS = ["bps", "kbps", "Mbps", "Gbps", "Tbps"];
  const X_SIZE = 24;
  const Y_SIZE = 46;
  const X_PAD = 20;  // half of a tick's text

  // ---- helpers ----

  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const jobColour = (job) => style("--job-" + (job % COLOURS));
  const font = () => "12px " + getComputedStyle(document.body).fontFamily;

  // Few digits, and no trailing zeros of a fixed format.
  const short = (value, digits) => String(Number(value.toPrecision(digits)));

  const timeText = (ns, digits) => {
    const size = Math.abs(ns);
    if (size >= 1e9) return short(ns / 1e9, digits) + " s";
    if (size >= 1e6) return short(ns / 1e6, digits) + " ms";
    if (size >= 1e3) return short(ns / 1e3, digits) + " µs";
    return short(ns, digits) + " ns";
  };

  // A time axis counts in one unit.
  const timeScale = (ns) => (ns >= 2e9 ? [1e9, "s"] : ns >= 2e6 ? [1e6, "ms"] : ns >= 2e3 ? [1e3, "µs"] : [1, "ns"]);

  const rateScale = (bps) => {
    let unit = 0;
    let scale = 1;
    while (bps >= 1000 * scale * 0.9995 && unit + 1 < RATE_UNITS.length) {
      scale *= 1000;
      unit += 1;
    }
    return [scale, RATE_UNITS[unit]];
  };

  // The highest rate in a run's bins, for links of unknown rate.
  const topRate = (run) => {
    if (run.top !== undefined) return run.top;
    const total = [];
    for (const use of run.usage) use.bytes.forEach((bytes, i) => { total[i] = (total[i] || 0) + bytes; });
    run.top = run.rate_bps || total.reduce((a, b) => Math.max(a, b || 0), 1) * 8e9 / run.bin_ns;
    return run.top;
  };

  // Bins of [from, to] gathered into at most `columns` columns, as stacked rates: [times, top of each job...], and
  // the plain rates for the tip. Columns sit at whole multiples of their width, so that nothing flickers on a move.
  const stacked = (run, from, to, columns, scale, timeUnit) => {
    const group = Math.max(1, Math.ceil((to - from) / run.bin_ns / Math.max(columns, 1)));
    const first = Math.max(0, Math.floor(from / run.bin_ns / group));
    const last = Math.max(first, Math.ceil(to / run.bin_ns / group));
    const xs = [];
    const plain = run.usage.map(() => []);
    const tops = run.usage.map(() => []);
    for (let c = first; c <= last; ++c) {
      xs.push(c * group * run.bin_ns / timeUnit);
      let sum = 0;
      run.usage.forEach((use, k) => {
        let bytes = 0;
        for (let b = c * group; b < (c + 1) * group && b < use.bytes.length; ++b) bytes += use.bytes[b];
        const rate = bytes * 8e9 / (group * run.bin_ns) / scale;
        sum += rate;
        plain[k].push(rate);
        tops[k].push(sum);
      });
    }
    return { xs, plain, tops };
  };

  // A tip that follows the cursor. `lines(index)` gives its first line and pairs of job and text.
  const tip = (lines) => {
    let box;
    return {
      hooks: {
        init: (u) => {
          box = document.createElement("div");
          box.className = "tip";
          box.hidden = true;
          u.over.appendChild(box);
        },
        setCursor: (u) => {
          const index = u.cursor.idx;
          const shown = index === null || index === undefined || u.cursor.left < 0 ? null : lines(index);
          box.hidden = shown === null;
          if (shown === null) return;
          box.textContent = shown.head;
          for (const [job, text] of shown.rows) {
            const row = document.createElement("div");
            const mark = document.createElement("i");
            mark.className = "swatch c" + (job % COLOURS);
            row.append(mark, text);
            box.appendChild(row);
          }
          const room = u.over.clientWidth - box.offsetWidth;
          const left = u.cursor.left + 12;
          box.style.left = Math.max(0, left > room ? u.cursor.left - 12 - box.offsetWidth : left) + "px";
        },
      },
    };
  };

  const axes = (yLabel, xValues, yValues) => [
    {
      stroke: style("--soft"), font: font(), size: X_SIZE,
      grid: { show: false }, ticks: { stroke: style("--line"), width: 1, size: 4 }, values: xValues, space: 60, gap: 3,
    },
    {
      stroke: style("--soft"), font: font(), size: Y_SIZE, label: yLabel, labelSize: 16, labelFont: font(), labelGap: 0,
      grid: { stroke: style("--line"), width: 1 }, ticks: { show: false }, values: yValues, space: 30, gap: 6,
    },
  ];

  // Lines drawn over the chart: [{x or y in scale units, colour, dash}].
  const rules = (list) => ({
    hooks: {
      draw: (u) => {
        const { ctx, bbox } = u;
        const px = uPlot.pxRatio;
        ctx.save();
        ctx.lineWidth = 1.25 * px;
        for (const rule of list) {
          ctx.strokeStyle = rule.colour;
          ctx.setLineDash(rule.dash.map((d) => d * px));
          ctx.beginPath();
          if (rule.y !== undefined) {
            const y = Math.round(u.valToPos(rule.y, "y", true));
            if (y < bbox.top - 1 || y > bbox.top + bbox.height + 1) continue;
            ctx.moveTo(bbox.left, y);
            ctx.lineTo(bbox.left + bbox.width, y);
          } else {
            const x = Math.round(u.valToPos(rule.x, "x", true));
            if (x < bbox.left || x > bbox.left + bbox.width) continue;
            ctx.moveTo(x, bbox.top);
            ctx.lineTo(x, bbox.top + bbox.height);
          }
          ctx.stroke();
        }
        ctx.restore();
      },
    },
  });

  const plotWidth = (element) => Math.max(60, element.clientWidth - Y_SIZE - 16 - X_PAD);

  // ---- the use of the link ----

  // Draws [from, to] of a run into `element`. `select`, when given, is told the stretch that the reader drags over,
  // and `reset` a double click. Time is counted from `zero`.
  const drawUsage = (element, run, from, to, select, reset) => {
    const [scale, unit] = rateScale(topRate(run));
    const [timeUnit, timeName] = timeScale(run.to_ns);  // one unit for all panels of a run
    const { xs, plain, tops } = stacked(run, from, to, plotWidth(element), scale, timeUnit);
    // The tallest stack first and the lower ones over it: each job's own share stays visible.
    const order = run.usage.map((_, k) => run.usage.length - 1 - k);
    const stepped = uPlot.paths.stepped({ align: 1 });
    const most = topRate(run) / scale;
    return new uPlot({
      width: element.clientWidth,
      height: element.clientHeight,
      padding: [6, X_PAD, 0, 0],
      legend: { show: false },
      cursor: {
        y: false,
        points: { show: false },
        drag: { x: Boolean(select), y: false, setScale: false },
        bind: { dblclick: () => () => { if (reset) reset(); } },
      },
      scales: {
        x: { time: false, range: () => [from / timeUnit, to / timeUnit] },
        y: { range: () => [0, most * 1.06] },
      },
      axes: axes(unit, (u, ticks) => ticks.map((t) => short(t, 6) + " " + timeName),
                 (u, ticks) => ticks.map((t) => short(t, 4))),
      series: [{}].concat(order.map((k) => ({
        stroke: jobColour(run.usage[k].job), fill: jobColour(run.usage[k].job), width: 0, paths: stepped,
        points: { show: false },
      }))),
      plugins: [
        rules(run.rate_bps ? [{ y: most, colour: style("--ink"), dash: [5, 4] }] : []),
        tip((i) => ({
          head: timeText(xs[i] * timeUnit, 5),
          rows: run.usage.map((use, k) => [use.job, data.jobs[use.job] + ": " + short(plain[k][i], 3) + " " + unit]),
        })),
      ],
      hooks: {
        setSelect: [(u) => {
          if (!select || u.select.width < 4) return;
          const a = u.posToVal(u.select.left, "x") * timeUnit;
          const b = u.posToVal(u.select.left + u.select.width, "x") * timeUnit;
          select(a, b);
        }],
      },
    }, [xs].concat(order.map((k) => tops[k])), element);
  };

  // ---- lines over iterations ----

  const columnsOf = (lines) => {
    const length = lines.reduce((most, line) => Math.max(most, line.ys.length), 0);
    const xs = Array.from({ length }, (_, i) => i);
    return [xs].concat(lines.map((line) => xs.map((i) => (i < line.ys.length ? line.ys[i] : null))));
  };

  const drawLines = (element, lines, yLabel, yRange, yText, marks, tipText) => {
    const columns = columnsOf(lines);
    const few = columns[0].length <= 80;
    return new uPlot({
      width: element.clientWidth,
      height: element.clientHeight,
      padding: [8, X_PAD, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
      scales: { x: { time: false, range: () => [0, Math.max(1, columns[0].length - 1)] }, y: { range: () => yRange } },
      axes: axes(yLabel, (u, ticks) => ticks.map((t) => (Number.isInteger(t) ? String(t) : "")),
                 (u, ticks) => ticks.map(yText)),
      series: [{}].concat(lines.map((line) => ({
        stroke: jobColour(line.job), width: 1.75,
        points: { show: few, size: 4, fill: jobColour(line.job), stroke: jobColour(line.job) },
      }))),
      plugins: [rules(marks), tip((i) => ({
        head: "iteration " + i,
        rows: lines.filter((line) => i < line.ys.length && line.ys[i] !== null)
            .map((line) => [line.job, tipText(line, i)]),
      }))],
    }, columns, element);
  };

  // All panels share one vertical scale, so that policies can be compared by eye. Times when the jobs are alike;
  // otherwise slowdowns, because a short job's line would be flat beside a long one's.
  const iterationScale = (() => {
    const alone = [];
    let most = 0;
    let least = Infinity;
    let slowest = 1;
    let fastest = 1;
    for (const run of data.runs) {
      for (const job of run.jobs) {
        if (job.isolated_ns > 0) alone.push(job.isolated_ns);
        for (const time of job.iteration_ns) {
          most = Math.max(most, time);
          least = Math.min(least, time);
          if (job.isolated_ns > 0) {
            slowest = Math.max(slowest, time / job.isolated_ns);
            fastest = Math.min(fastest, time / job.isolated_ns);
          }
        }
      }
    }
    const bottom = alone.length ? alone.reduce((a, b) => Math.min(a, b)) : least;
    const top = alone.length ? alone.reduce((a, b) => Math.max(a, b)) : most;
    const inTime = alone.length === 0 || top <= 1.5 * bottom;
    const [unit, name] = timeScale(most);
    const range = inTime ? [Math.min(bottom, least) / unit, Math.max(most, top) / unit] : [fastest, slowest];
    const room = Math.max((range[1] - range[0]) * 0.08, range[1] * 0.01);
    return {
      label: inTime ? name : "× alone",
      range: [Math.max(0, range[0] - room), range[1] + room],
      value: (ns, job) => (inTime ? ns / unit : job.isolated_ns > 0 ? ns / job.isolated_ns : null),
      inTime,
    };
  })();

  const drawIterations = (element, run) => {
    const marks = [];
    const seen = new Set();
    const add = (key, mark) => {
      if (!seen.has(key)) marks.push(mark);
      seen.add(key);
    };
    for (const job of run.jobs) {
      if (job.interleaved_from > 0) {
        add("x" + job.interleaved_from, { x: job.interleaved_from, colour: style("--soft"), dash: [2, 3] });
      }
    }
    for (const job of run.jobs) {
      if (job.isolated_ns > 0) {
        const y = iterationScale.value(job.isolated_ns, job);
        // One line for jobs that are the same to the eye; else each in its job's colour.
        const near = 0.005 * job.isolated_ns;
        const alike = run.jobs.every((other) => Math.abs(other.isolated_ns - job.isolated_ns) <= near);
        const shared = alike || !iterationScale.inTime;
        add(shared ? "alone" : "y" + y, { y, colour: shared ? style("--ink") : jobColour(job.job), dash: [5, 4] });
      }
    }
    const lines = run.jobs.map((job) => (
      { job: job.job, of: job, ys: job.iteration_ns.map((ns) => iterationScale.value(ns, job)) }));
    const tipText = (line, i) => {
      const ns = line.of.iteration_ns[i];
      const ratio = line.of.isolated_ns > 0 ? " (" + (ns / line.of.isolated_ns).toFixed(2) + "×)" : "";
      return data.jobs[line.job] + ": " + timeText(ns, 4) + ratio;
    };
    const { label, range } = iterationScale;
    return drawLines(element, lines, label, range, (t) => short(t, 4), marks, tipText);
  };

  // How far each job of a group starts from the group's first job: the way to that job's nearest start, as a share of
  // its iteration at the time. Folded to at most a half, so that a little early and a little late look alike.
  const drawOffset = (element, run) => {
    const [first, ...others] = run.same_period.map((index) => run.jobs[index]);
    const lines = others.map((job) => {
      let at = 0;
      const ys = job.start_ns.map((start) => {
        while (at + 1 < first.start_ns.length && first.start_ns[at + 1] <= start) at += 1;
        const share = (start - first.start_ns[at]) / first.iteration_ns[at];
        return share >= 0 && share <= 1 ? Math.min(share, 1 - share) : null;  // null: the first job is not at work
      });
      return { job: job.job, ys };
    });
    return drawLines(element, lines, "of an iteration", [0, 0.52], (t) => short(t, 2), [],
                     (line, i) => data.jobs[line.job] + ": " + line.ys[i].toFixed(3) + " of an iteration apart");
  };

  // ---- the page ----

  const charts = new Map();  // element -> what draws it, and what is drawn

  const draw = (element) => {
    const chart = charts.get(element);
    if (chart.plot) chart.plot.destroy();
    chart.width = element.clientWidth;
    chart.plot = chart.make();
  };

  for (const element of document.querySelectorAll(".chart[data-kind]")) {
    const run = data.runs[Number(element.dataset.run)];
    const make = {
      first: () => drawUsage(element, run, run.from_ns, run.from_ns + data.window_ns),
      last: () => drawUsage(element, run, run.to_ns - data.window_ns, run.to_ns),
      iterations: () => drawIterations(element, run),
      offset: () => drawOffset(element, run),
    }[element.dataset.kind];
    charts.set(element, { make });
  }

  const explorer = document.getElementById("explorer");
  if (explorer) {
    const buttons = [...document.querySelectorAll("#pick button")];
    let run = null;
    let from = 0;
    let to = 1;
    const show = (a, b) => {
      const end = run.to_ns;
      const width = Math.min(Math.max(b - a, 8 * run.bin_ns), end - run.from_ns);
      from = Math.min(Math.max(a, run.from_ns), end - width);
      to = from + width;
      draw(explorer);
    };
    const all = () => show(run.from_ns, run.to_ns);
    const pick = (button) => {
      run = data.runs[Number(button.dataset.run)];
      for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
      all();
    };
    const moves = {
      left: () => show(from - (to - from) / 2, to - (to - from) / 2),
      right: () => show(from + (to - from) / 2, to + (to - from) / 2),
      in: () => show(from + (to - from) / 4, to - (to - from) / 4),
      out: () => show(from - (to - from) / 2, to + (to - from) / 2),
      all,
    };
    charts.set(explorer, { make: () => drawUsage(explorer, run, from, to, show, all) });
    for (const button of buttons) button.addEventListener("click", () => pick(button));
    for (const button of document.querySelectorAll("#move button")) {
      button.addEventListener("click", () => moves[button.dataset.move]());
    }
    pick(buttons.find((button) => button.getAttribute("aria-pressed") === "true") || buttons[buttons.length - 1]);
  }

  for (const element of charts.keys()) {
    if (!charts.get(element).plot) draw(element);
  }

  const redraw = () => { for (const element of charts.keys()) draw(element); };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  const observer = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      if (target.clientWidth > 0 && target.clientWidth !== charts.get(target).width) draw(target);
    }
  });
  for (const element of charts.keys()) observer.observe(element);
})();
