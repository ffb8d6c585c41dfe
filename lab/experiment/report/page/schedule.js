// Drawings of a schedule's page, in SVG, from the JSON block of the page: the circles of the chosen link before and after
// rotation, its demand unrolled over the perimeter, and the network with its shared links coloured by score.
"use strict";

(() => {
  const data = JSON.parse(document.getElementById("schedule-data").textContent);
  const COLOURS = 8;  // .c0 ... of report.css
  const MAX_STEPS = 4000;  // of a demand drawn as it is; beyond, its mean over BINS equal parts of the perimeter
  const BINS = 2000;
  const MAX_PLAIN_LINKS = 6000;  // that nobody shares; with more, only the shared ones are drawn

  // ---- helpers ----

  const svg = (name, attributes, ...children) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };
  const html = (name, attributes, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };
  const titled = (element, text) => {
    element.append(svg("title", {}, text));
    return element;
  };
  const short = (value, digits) => String(Number(value.toPrecision(digits)));
  const timeText = (ns, digits = 4) => {
    if (ns >= 1e9) return short(ns / 1e9, digits) + " s";
    if (ns >= 1e6) return short(ns / 1e6, digits) + " ms";
    if (ns >= 1e3) return short(ns / 1e3, digits) + " µs";
    return short(ns, digits) + " ns";
  };
  const rateText = (bps) => {
    let unit = 0;
    while (bps >= 999.5 && unit < 4) { bps /= 1000; unit += 1; }
    return short(bps, 3) + " " + ["bps", "kbps", "Mbps", "Gbps", "Tbps"][unit];
  };
  const colour = (place) => "c" + (place % COLOURS) +
    (place >= COLOURS ? " again" + (1 + Math.floor(place / COLOURS - 1) % 2) : "");

  // ---- demand over the perimeter ----

  // Bursts of a job over one perimeter, [from, to, rate], none of them across its end.
  const bursts = (link, [job, demand], shifted) => {
    const { slot, shift } = data.jobs[job];
    const result = [];
    for (let begin = 0; begin < link.perimeter; begin += slot) {
      for (const [from, to, rate] of data.demands[demand]) {
        const start = (begin + (shifted ? shift : 0) + from) % link.perimeter;
        const end = start + to - from;
        result.push([start, Math.min(end, link.perimeter), rate]);
        if (end > link.perimeter) result.push([0, end - link.perimeter, rate]);
      }
    }
    return result;
  };

  // Edges of steps and each job's rate in them: {edges: n + 1 times, rates: [job][n], sums: [n]}.
  const stepsOf = (link, shifted) => {
    const all = link.uses.map((use) => bursts(link, use, shifted));
    const times = new Set([0, link.perimeter]);
    for (const list of all) for (const [from, to] of list) { times.add(from); times.add(to); }
    const exact = times.size <= MAX_STEPS;
    const edges = exact ? [...times].sort((a, b) => a - b)
                        : Array.from({ length: BINS + 1 }, (_, i) => link.perimeter * i / BINS);
    const place = new Map(edges.map((time, i) => [time, i]));
    const n = edges.length - 1;
    const rates = all.map((list) => {
      const row = new Float64Array(n);
      for (const [from, to, rate] of list) {
        if (exact) {
          for (let i = place.get(from); i < place.get(to); ++i) row[i] += rate;
          continue;
        }
        const width = link.perimeter / BINS;
        for (let i = Math.floor(from / width); i < n && edges[i] < to; ++i) {
          row[i] += rate * Math.max(0, Math.min(to, edges[i + 1]) - Math.max(from, edges[i])) / width;
        }
      }
      return row;
    });
    const sums = new Float64Array(n);
    for (const row of rates) row.forEach((rate, i) => { sums[i] += rate; });
    return { edges, rates, sums, all };
  };

  // ---- circles ----

  const CENTRE = 200;
  const at = (radius, turn) => {
    const angle = 2 * Math.PI * turn;
    return [CENTRE + radius * Math.sin(angle), CENTRE - radius * Math.cos(angle)].map((v) => v.toFixed(2)).join(" ");
  };
  // From where the pen is, which is at turn `from`. An arc of half a turn or more is two.
  const arc = (radius, from, to) => {
    const way = to > from ? 1 : 0;
    if (Math.abs(to - from) >= 0.5) {
      const middle = (from + to) / 2;
      return arc(radius, from, middle) + arc(radius, middle, to);
    }
    return `A ${radius.toFixed(2)} ${radius.toFixed(2)} 0 0 ${way} ${at(radius, to)}`;
  };
  const sector = (inner, outer, from, to) =>
    `M ${at(outer, from)} ${arc(outer, from, to)} L ${at(inner, to)} ${arc(inner, to, from)} Z`;

  // Told from every fill by lightness alone, in print and whatever colours one sees: dark stripes beside light ones, with
  // the job's colour between them.
  const hatch = () => svg("defs", {}, svg("pattern",
    { id: "hatch", width: 9, height: 9, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    svg("rect", { width: 3, height: 9, style: "fill: var(--paper)" }),
    svg("rect", { x: 3, width: 2.5, height: 9, style: "fill: var(--ink)" })));

  const drawCircle = (link, shifted, top) => {
    const steps = stepsOf(link, shifted);
    const turn = (time) => time / link.perimeter;
    const picture = svg("svg", { viewBox: "-40 0 480 400", role: "img", "aria-label":
      (shifted ? "Circle after rotation, score " + link.score : "Circle before rotation, score " + link.unshifted) });
    const count = link.uses.length;
    const inner = count > 3 ? 34 : 48;
    const outer = 112;
    const pitch = (outer - inner) / count;
    const width = Math.max(pitch * 0.82, 1);
    for (let k = 0; k < 4; ++k) {
      const [x1, y1] = at(outer + 4, k / 4).split(" ");
      const [x2, y2] = at(186, k / 4).split(" ");
      picture.append(svg("line", { class: "grid", x1, y1, x2, y2 }));
    }
    // The jobs' rings, the first outermost. A burst is as high as its rate, of the job's highest.
    link.uses.forEach(([job, demand], place) => {
      const base = outer - (place + 1) * pitch;
      const peak = data.demands[demand].reduce((most, [, , rate]) => Math.max(most, rate), 0);
      picture.append(svg("circle", { class: "track", cx: CENTRE, cy: CENTRE, r: base }));
      for (const [from, to, rate] of steps.all[place]) {
        picture.append(titled(
          svg("path", { class: colour(place), d: sector(base, base + width * rate / peak, turn(from), turn(to)) }),
          `${data.jobs[job].name}: ${timeText(from)} to ${timeText(to)}, ${rateText(rate)}`));
      }
      const { slot, shift } = data.jobs[job];
      const thin = Math.min(1, 16 * slot / link.perimeter);  // of many bars
      for (let k = 0; k * slot < link.perimeter; ++k) {
        const begin = turn((k * slot + (shifted ? shift : 0)) % link.perimeter);
        const [x1, y1] = at(base, begin).split(" ");
        const [x2, y2] = at(base + width, begin).split(" ");
        picture.append(titled(svg("line", { class: "begin" + (k === 0 ? " first" : ""), x1, y1, x2, y2,
                                            ...(k === 0 ? {} : { style: `stroke-width: ${2 * thin}` }) }),
                              `${data.jobs[job].name}: an iteration begins`));
      }
    });
    // Their sum as a curve around them, and the capacity.
    const zero = outer + 8;
    const radius = (rate) => zero + (182 - zero) * rate / top;
    const capacity = radius(link.capacity);
    let outline = "";
    let first = true;
    steps.sums.forEach((sum, i) => {
      const from = turn(steps.edges[i]);
      outline += (first ? `M ${at(radius(sum), from)}` : `L ${at(radius(sum), from)}`);
      outline += arc(radius(sum), from, turn(steps.edges[i + 1]));
      first = false;
    });
    outline += `Z M ${at(zero, 1)} ${arc(zero, 1, 0)} Z`;
    picture.append(svg("path", { class: "sum", d: outline }));
    let over = "";
    steps.sums.forEach((sum, i) => {
      if (sum > link.capacity) over += sector(capacity, radius(sum), turn(steps.edges[i]), turn(steps.edges[i + 1]));
    });
    if (over) picture.append(titled(svg("path", { class: "over", d: over }), "beyond the capacity"));
    picture.append(titled(svg("circle", { class: "capacity", cx: CENTRE, cy: CENTRE, r: capacity }),
                          "capacity: " + rateText(link.capacity)));
    for (const [k, x, y, anchor] of [[0, 200, 11, "middle"], [1, 392, 204, "start"], [2, 200, 397, "middle"],
                                     [3, 8, 204, "end"]]) {
      picture.append(svg("text", { x, y, "text-anchor": anchor }, k === 0 ? "0" : timeText(link.perimeter * k / 4, 3)));
    }
    picture.append(svg("text", { class: "ink", x: CENTRE, y: CENTRE + 4, "text-anchor": "middle" },
                       timeText(link.perimeter, 4)));
    return picture;
  };

  // ---- unrolled ----

  const niceStep = (span, most) => {
    const rough = span / most;
    const power = 10 ** Math.floor(Math.log10(rough));
    return power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  };

  const drawUnrolled = (box, link, shifted, top) => {
    const steps = stepsOf(link, shifted);
    const width = Math.max(box.clientWidth, 280);
    const height = 150;
    const [left, right, above, below] = [70, 8, 8, 22];
    const x = (time) => left + (width - left - right) * time / link.perimeter;
    const y = (rate) => height - below - (height - above - below) * rate / top;
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label":
      `Demand over the perimeter ${shifted ? "after" : "before"} rotation, job by job, with the capacity` });
    const n = steps.sums.length;
    const low = new Float64Array(n);
    steps.rates.forEach((row, place) => {
      let d = "";
      for (let i = 0; i < n; ++i) {
        if (row[i] <= 0) continue;
        // Equal neighbours are one rectangle.
        let end = i;
        while (end + 1 < n && row[end + 1] === row[i] && low[end + 1] === low[i]) end += 1;
        const [x0, x1] = [x(steps.edges[i]), x(steps.edges[end + 1])];
        d += `M ${x0.toFixed(2)} ${y(low[i]).toFixed(2)} V ${y(low[i] + row[i]).toFixed(2)} H ${x1.toFixed(2)} ` +
          `V ${y(low[i]).toFixed(2)} Z`;
        i = end;
      }
      picture.append(svg("path", { class: colour(place), d }));
      row.forEach((rate, i) => { low[i] += rate; });
    });
    let over = "";
    for (let i = 0; i < n; ++i) {
      if (steps.sums[i] <= link.capacity) continue;
      over += `M ${x(steps.edges[i]).toFixed(2)} ${y(link.capacity).toFixed(2)} V ${y(steps.sums[i]).toFixed(2)} ` +
        `H ${x(steps.edges[i + 1]).toFixed(2)} V ${y(link.capacity).toFixed(2)} Z`;
    }
    if (over) picture.append(svg("path", { class: "over", d: over }));
    picture.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: y(0), y2: y(0) }));
    picture.append(svg("line", { class: "capacity", x1: left, x2: width - right, y1: y(link.capacity),
                                 y2: y(link.capacity) }));
    picture.append(svg("text", { x: left - 6, y: y(link.capacity) + 4, "text-anchor": "end" }, rateText(link.capacity)));
    if (y(0) - y(link.capacity) > 12) {
      picture.append(svg("text", { x: left - 6, y: y(0) + 4, "text-anchor": "end" }, "0"));
    }
    const step = niceStep(link.perimeter, Math.max(2, width / 90));
    for (let time = 0; time <= link.perimeter; time += step) {
      picture.append(svg("text", { x: x(time), y: height - 6, "text-anchor": x(time) > width - 40 ? "end" : "middle" },
                         time === 0 ? "0" : timeText(time)));
    }
    const cursor = svg("line", { class: "cursor", y1: above, y2: height - below, visibility: "hidden" });
    picture.append(cursor);
    const tip = html("div", { class: "tip", hidden: "" });
    picture.addEventListener("pointermove", (event) => {
      const place = picture.getBoundingClientRect();
      const time = ((event.clientX - place.left) * width / place.width - left) / (width - left - right) * link.perimeter;
      const inside = time >= 0 && time < link.perimeter;
      tip.hidden = !inside;
      cursor.setAttribute("visibility", inside ? "visible" : "hidden");
      if (!inside) return;
      let step_ = steps.edges.findIndex((edge) => edge > time) - 1;
      if (step_ < 0) step_ = n - 1;
      cursor.setAttribute("x1", x(time));
      cursor.setAttribute("x2", x(time));
      tip.textContent = `${timeText(time)}: ${rateText(steps.sums[step_])} of ${rateText(link.capacity)}`;
      link.uses.forEach(([job], k) => {
        if (steps.rates[k][step_] <= 0) return;
        tip.append(html("div", {}, html("i", { class: "swatch " + colour(k) }),
                        `${data.jobs[job].name}: ${rateText(steps.rates[k][step_])}`));
      });
      const at_ = (event.clientX - place.left) + 12;
      tip.style.left = Math.max(0, at_ > place.width - tip.offsetWidth ? at_ - 24 - tip.offsetWidth : at_) + "px";
    });
    picture.addEventListener("pointerleave", () => {
      tip.hidden = true;
      cursor.setAttribute("visibility", "hidden");
    });
    box.replaceChildren(picture, tip);
  };

  // ---- the chosen link ----

  const section = document.getElementById("link");
  let chosen = null;
  let redraw = () => {};

  const millis = (ns) => (ns / 1e6).toFixed(3);
  const degrees = (job, link) => (360 * data.jobs[job].shift / link.perimeter).toFixed(1) + "°";

  const show = (index) => {
    const link = data.links[index];
    chosen = index;
    section.replaceChildren();
    if (data.links.length > 1) section.append(html("h2", { class: "chosen" }, link.name));
    else section.append(html("h2", { class: "chosen" }, "Before and after rotation"));
    if (data.links.length > 1) section.append(html("p", {}, `Score ${link.score}: ${link.verdict}.`));
    const legend = html("ul", { class: "legend" });
    link.uses.forEach(([job], place) => {
      legend.append(html("li", {}, html("i", { class: "swatch " + colour(place) }), data.jobs[job].name));
    });
    section.append(legend);
    redraw = () => {};
    if (link.perimeter > 0) {
      // One scale for both, with a little air above the higher.
      const most = (shifted) => stepsOf(link, shifted).sums.reduce((a, b) => Math.max(a, b), 0);
      const top = 1.08 * Math.max(link.capacity, most(false), most(true));
      const pair = html("div", { class: "pair" });
      section.append(svg("svg", { width: 0, height: 0, "aria-hidden": "true" }, hatch()), pair);
      const boxes = [];
      for (const shifted of [false, true]) {
        const caption = html("figcaption", {}, shifted ? "After rotation: " : "Before, all begin together: ",
                             html("b", {}, "score " + (shifted ? link.score : link.unshifted)));
        pair.append(html("figure", { class: "circle" }, caption, drawCircle(link, shifted, top)));
      }
      section.append(html("p", { class: "key" }, "Rings: the times at which each job sends, with its rate as the height; a bar marks " +
        "the beginning of an iteration, a thick bar the job's time shift. Around the rings: the sum of the rates, with the " +
        "capacity dashed and the excess hatched."));
      for (const shifted of [false, true]) {
        const box = html("div", { class: "unrolled" });
        section.append(html("figure", {}, html("figcaption", {}, `Unrolled, ${shifted ? "after" : "before"}`), box));
        boxes.push([box, shifted]);
      }
      redraw = () => { for (const [box, shifted] of boxes) drawUnrolled(box, link, shifted, top); };
      redraw();
    }
    if (data.links.length > 1 && link.perimeter > 0) {
      const body = html("tbody");
      for (const [job] of link.uses) {
        const { name, slot, shift } = data.jobs[job];
        body.append(html("tr", {}, html("th", { scope: "row" }, html("span", { class: "name" }, name)),
                         ...[["Repetitions", String(link.perimeter / slot)], ["Slot, ms", millis(slot)],
                             ["Rotation", degrees(job, link)], ["Time shift, ms", millis(shift)],
                             ["Others' score without it", (link.removals || []).filter(([j]) => j === job)
                               .map(([, score]) => score)[0] || "–"]]
                           .map(([label, text]) => html("td", { "data-label": label }, html("span", {}, text)))));
      }
      const head = html("tr", {}, ...["Job", "Repetitions", "Slot, ms", "Rotation", "Time shift, ms",
                                 "Others' score without it"]
        .map((text) => html("th", { scope: "col" }, text)));
      section.append(html("div", { class: "wide" },
                          html("table", { class: "cards" }, html("thead", {}, head), body)));
    }
    for (const button of document.querySelectorAll("button.link")) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.link) === index));
    }
    for (const line of document.querySelectorAll("#network .mark")) {
      line.classList.toggle("chosen", Number(line.dataset.link) === index);
    }
  };

  const choose = (index) => {
    show(index);
    section.scrollIntoView({ block: "start" });
  };

  // ---- the network ----

  const drawNetwork = (element) => {
    const { names, tiers, cables } = data.network;
    const available = Math.max(element.clientWidth, 320);
    const gap = Math.min(Math.max(available / tiers[0].length, 5), 40);  // between hosts
    const width = Math.max(available, tiers[0].length * gap, ...tiers.slice(1).map((tier) => tier.length * 30));
    // Wide networks need room for their angles.
    const rise = Math.min(Math.max(width * 0.15, 200), 480) / Math.max(tiers.length - 2, 1);
    const rowY = (row) => 26 + (row === 0 ? rise * Math.max(tiers.length - 2, 0) + 86
                                          : rise * (tiers.length - 1 - row));
    const height = rowY(0) + 24;
    const places = [];
    tiers.forEach((tier, row) => tier.forEach((node, i) => {
      if (node === null) return;
      const step = row === 0 ? Math.min(gap * 1.5, width / tier.length) : width / tier.length;
      places[node] = [width / 2 + (i + 0.5 - tier.length / 2) * step, rowY(row)];
    }));
    const hosts = new Set(tiers[0]);
    // What hosts hang on stands above them.
    const below = new Map();
    for (const cable of cables) {
      for (const [host, node] of [cable, [...cable].reverse()]) {
        if (!hosts.has(host) || hosts.has(node)) continue;
        if (!below.has(node)) below.set(node, []);
        below.get(node).push(places[host][0]);
      }
    }
    for (const [node, xs] of below) places[node][0] = xs.reduce((sum, x) => sum + x, 0) / xs.length;
    const numbers = new Map(names.map((name, i) => [name, i]));
    const picture = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
    // Both directions side by side: each keeps to its right.
    const line = ([x1, y1], [x2, y2], attributes) => {
      const length = Math.hypot(x2 - x1, y2 - y1);
      const [dx, dy] = [-(y2 - y1) / length * 2.5, (x2 - x1) / length * 2.5];
      return svg("line", { x1: (x1 + dx).toFixed(1), y1: (y1 + dy).toFixed(1), x2: (x2 + dx).toFixed(1),
                           y2: (y2 + dy).toFixed(1), ...attributes });
    };
    if (2 * cables.length <= MAX_PLAIN_LINKS) {
      for (const [a, b] of cables) {
        picture.append(line(places[a], places[b], { class: "plain" }), line(places[b], places[a], { class: "plain" }));
      }
    }
    // The worst on top, and above all of them what the pointer meets.
    const order = data.links.map((_, i) => i).sort((a, b) => data.links[a].step - data.links[b].step);
    const hits = [];
    for (const index of order) {
      const link = data.links[index];
      const [from, to] = link.name.split(" -> ").map((name) => places[numbers.get(name)]);
      if (!from || !to) continue;
      picture.append(line(from, to, { class: "mark", "data-link": index }),
                     line(from, to, { class: "shared s" + link.step }));
      const hit = line(from, to, { class: "hit" });
      titled(hit, `${link.name}: score ${link.score}, ${link.uses.length} jobs`);
      hit.addEventListener("click", () => choose(index));
      hits.push(hit);
    }
    picture.append(...hits);
    const few = tiers[0].length <= 1280;
    tiers.forEach((tier, row) => {
      for (const node of tier) {
        if (node === null || (row === 0 && !few)) continue;
        const [cx, cy] = places[node];
        const r = row > 0 ? 8 : gap > 14 ? 5 : 2.5;
        picture.append(titled(svg("circle", { class: "node", cx, cy, r }), names[node]));
      }
    });
    const shown = (node) => node.replace(/[ -]*\d+$/, "");
    tiers.forEach((tier, row) => {
      // A row whose switches have one name but for a number is called by it.
      const kinds = new Set(tier.filter((node) => node !== null).map((node) => shown(names[node])));
      const label = row === 0 ? "hosts" : kinds.size === 1 ? [...kinds][0] : "";
      picture.append(svg("text", { x: 2, y: row === 0 ? height - 4 : rowY(row) - 14 }, label));
    });
    element.replaceChildren(picture);
  };

  // ---- the page ----

  const network = document.getElementById("network");
  if (network) drawNetwork(network);
  for (const button of document.querySelectorAll("button.link")) {
    button.addEventListener("click", () => choose(Number(button.dataset.link)));
  }
  if (section) show(data.first);

  let width = document.body.clientWidth;
  addEventListener("resize", () => {
    if (document.body.clientWidth === width) return;
    width = document.body.clientWidth;
    if (network) drawNetwork(network);
    if (section && chosen !== null) show(chosen);
  });
})();
