// The charts of the report's pages, drawn as SVG from the JSON block of the page, and saved by the reader as SVG, PNG or
// CSV. An element says by data-chart which of the block's charts it shows. Colours are variables of report.css, so that
// a chart follows the colour scheme without being drawn anew; a saved one has the values of the moment.
"use strict";

const mltcpCharts = (() => {
  const data = JSON.parse(document.getElementById("report-data").textContent);
  const RATE_UNITS = ["bps", "kbps", "Mbps", "Gbps", "Tbps"];
  const FONT = 12;
  const LINE = 16;    // of text
  const BOTTOM = 38;  // ticks and label of the x axis
  const RIGHT = 20;   // half of a tick's text
  const TOP = 8;

  // ---- text ----

  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const family = () => getComputedStyle(document.body).fontFamily.replace(/"/g, "'");
  const measure = (() => {
    const context = document.createElement("canvas").getContext("2d");
    return (text) => {
      context.font = FONT + "px " + getComputedStyle(document.body).fontFamily;
      return context.measureText(text).width;
    };
  })();
  const shortened = (text, space) => {
    if (measure(text) <= space) return text;
    let length = text.length;
    while (length > 1 && measure(text.slice(0, length) + "…") > space) length -= 1;
    return text.slice(0, length) + "…";
  };

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

  // Round numbers within [from, to], about `count` of them, and as text.
  const ticks = (from, to, count, whole) => {
    const rough = (to - from) / Math.max(1, count);
    const power = 10 ** Math.floor(Math.log10(rough));
    let step = power * [1, 2, 5, 10].find((n) => n * power >= rough * 0.999);
    if (whole) step = Math.max(1, Math.round(step));
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const list = [];
    for (let n = Math.ceil(from / step - 1e-9); n * step <= to + step * 1e-9; ++n) {
      list.push([n * step, (n * step).toFixed(digits)]);
    }
    return list;
  };

  // ---- SVG ----

  const node = (name, attributes, text) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const colour = (name) => "var(--" + name + ")";
  const at = (value) => String(Math.round(value * 10) / 10);

  // The frame of a chart: room for axes, and from values to places. `rows`, instead of a y axis, are names.
  const frame = (svg, width, height, x, y, rows) => {
    const yTicks = rows ? [] : ticks(y.from, y.to, Math.max(2, Math.floor((height - TOP - BOTTOM) / 34)), y.whole);
    const yText = (tick) => tick[1] + (y.suffix || "");
    const names = rows ? rows.map((row) => shortened(row, Math.max(40, width * 0.3))) : [];
    const labels = rows ? names : yTicks.map(yText);
    const needed = Math.ceil(labels.reduce((most, text) => Math.max(most, measure(text)), 0)) + 8 + (rows ? 0 : LINE + 2);
    const left = Math.max(needed, y.space || 0);  // charts below each other have one time axis
    const box = { left, top: TOP, width: Math.max(20, width - left - RIGHT), height: Math.max(10, height - TOP - BOTTOM) };
    const px = (value) => box.left + (value - x.from) / (x.to - x.from) * box.width;
    const py = (value) => box.top + box.height - (value - y.from) / (y.to - y.from) * box.height;
    const bottom = box.top + box.height;
    const text = (attributes, content) => svg.appendChild(node("text", { fill: colour("soft"), ...attributes }, content));
    for (const tick of yTicks) {
      svg.appendChild(node("path", { d: `M${box.left} ${at(py(tick[0]))}h${at(box.width)}`, stroke: colour("line") }));
      text({ x: box.left - 6, y: at(py(tick[0]) + 4), "text-anchor": "end" }, yText(tick));
    }
    const each = rows ? box.height / rows.length : 0;
    const every = rows ? Math.ceil(13 / each) : 1;
    names.forEach((name, n) => {
      if (n % every === 0) text({ x: box.left - 6, y: at(box.top + (n + 0.5) * each + 4), "text-anchor": "end" }, name);
    });
    svg.appendChild(node("path", { d: `M${box.left} ${at(bottom)}h${at(box.width)}`, stroke: colour("soft") }));
    for (const tick of ticks(x.from, x.to, Math.max(2, Math.floor(box.width / 70)), x.whole)) {
      svg.appendChild(node("path", { d: `M${at(px(tick[0]))} ${at(bottom)}v4`, stroke: colour("soft") }));
      text({ x: at(px(tick[0])), y: at(bottom + 16), "text-anchor": "middle" }, tick[1] + (x.suffix || ""));
    }
    text({ x: at(box.left + box.width / 2), y: at(bottom + 33), "text-anchor": "middle" }, x.label);
    if (!rows) {
      const middle = at(box.top + box.height / 2);
      text({ x: 11, y: middle, "text-anchor": "middle", transform: `rotate(-90 11 ${middle})` }, y.label);
    }
    return { box, px, py, bottom, value: (place) => x.from + (place - box.left) / box.width * (x.to - x.from) };
  };

  const rule = (svg, chart, line) => {
    const { box, px, py } = chart;
    const d = line.y !== undefined ? `M${box.left} ${at(py(line.y))}h${at(box.width)}`
                                   : `M${at(px(line.x))} ${box.top}v${at(box.height)}`;
    svg.appendChild(node("path", {
      d, stroke: colour(line.colour), fill: "none", "stroke-width": 1.25, "stroke-dasharray": line.dash,
    }));
  };

  // ---- the kinds of charts ----
  // Each draws into `svg` and gives {legend: [[colour, dash, name]], tip: place -> {at, head, rows}, csv: () -> rows}.

  const bands = (svg, spec, width, height, span) => {
    const [from, to] = span || [spec.from, spec.to];
    const [scale, unit] = rateScale(spec.top);
    const [timeUnit, timeName] = timeScale(spec.longest);  // one unit for all panels of a run
    const chart = frame(svg, width, height, { from: from / timeUnit, to: to / timeUnit, label: "time, " + timeName },
                        { from: 0, to: spec.top / scale * 1.06, label: unit, space: spec.space });
    const { px, py } = chart;
    const length = spec.series.reduce((most, band) => Math.max(most, band.v.length), 0);
    // Bins gathered into columns at whole multiples of their width, so that nothing flickers on a move.
    const group = Math.max(1, Math.ceil((to - from) / spec.dt / chart.box.width));
    const first = Math.max(0, Math.floor((from - spec.t0) / spec.dt / group));
    const last = Math.min(Math.ceil(length / group) - 1, Math.ceil((to - spec.t0) / spec.dt / group));
    const rate = (band, c) => {
      let bytes = 0;
      for (let b = c * group; b < (c + 1) * group && b < band.v.length; ++b) bytes += band.v[b];
      return bytes * 8e9 / (group * spec.dt) / scale;
    };
    const start = (c) => Math.min(Math.max((spec.t0 + c * group * spec.dt), from), to) / timeUnit;
    const rates = spec.series.map((band) => {
      const list = [];
      for (let c = first; c <= last; ++c) list.push(rate(band, c));
      return list;
    });
    const sums = [];
    rates.forEach((list, k) => sums.push(list.map((value, i) => value + (k > 0 ? sums[k - 1][i] : 0))));
    // The tallest stack first and the lower ones over it: each band's own share stays visible.
    for (let k = spec.series.length - 1; k >= 0; --k) {
      let d = `M${at(px(start(first)))} ${at(py(0))}`;
      let before = 0;
      for (let c = first; c <= last; ++c) {
        const value = Math.min(sums[k][c - first], spec.top / scale * 1.06);
        if (value !== before) d += `H${at(px(start(c)))}V${at(py(value))}`;
        before = value;
      }
      d += `H${at(px(start(last + 1)))}V${at(py(0))}Z`;
      svg.appendChild(node("path", { d, fill: colour(spec.series[k].colour) }));
    }
    if (spec.rate) rule(svg, chart, { y: spec.rate / scale, colour: "ink", dash: "5 4" });
    return {
      legend: spec.series.map((band) => [band.colour, "", band.name]),
      tip: (place) => {
        const c = Math.floor((chart.value(place) * timeUnit - spec.t0) / spec.dt / group);
        if (c < first || c > last) return null;
        return {
          at: px(start(c)),
          head: timeText(start(c) * timeUnit, 5),
          rows: spec.series.map((band, k) => [band.colour, band.name + ": " + short(rates[k][c - first], 3) + " " + unit])
            .filter((row, k) => spec.series.length < 6 || rates[k][c - first] > 0),
        };
      },
      csv: () => [["time_ns"].concat(spec.series.map((band) => band.name + " [bps]"))].concat(
        Array.from({ length }, (_, i) => [spec.t0 + i * spec.dt].concat(
          spec.series.map((band) => Math.round((band.v[i] || 0) * 8e9 / spec.dt)))).filter(
          (row) => row[0] + spec.dt > from && row[0] < to)),
      chart, timeUnit,
    };
  };

  const lanes = (svg, spec, width, height) => {
    const [timeUnit, timeName] = timeScale(spec.longest);
    const chart = frame(svg, width, height,
                        { from: spec.from / timeUnit, to: spec.to / timeUnit, label: "time, " + timeName }, {},
                        spec.rows.map((row) => row.name));
    const { box, px } = chart;
    const each = box.height / spec.rows.length;
    spec.rows.forEach((row, n) => {
      let d = "";
      for (let b = 0; b < row.v.length; b += 2) {
        const from = px(row.v[b] / timeUnit);
        const wide = Math.max(0.5, px(row.v[b + 1] / timeUnit) - from);
        d += `M${at(from)} ${at(box.top + n * each + each * 0.12)}h${at(wide)}v${at(each * 0.76)}h${at(-wide)}z`;
      }
      svg.appendChild(node("path", { d, fill: colour(row.colour) }));
    });
    return {
      legend: [],
      tip: (place) => {
        const time = chart.value(place) * timeUnit;
        const busy = spec.rows.filter((row) => {
          for (let b = 0; b < row.v.length; b += 2) if (time >= row.v[b] && time < row.v[b + 1]) return true;
          return false;
        });
        return {
          at: place, head: timeText(time, 5),
          rows: busy.slice(0, 12).map((row) => [row.colour, row.name]).concat(
            busy.length === 0 ? [["", "no job communicates"]] : busy.length > 12 ? [["", busy.length - 12 + " more"]] : []),
        };
      },
      csv: () => {
        const rows = [["job", "from_ns", "to_ns"]];
        for (const row of spec.rows) {
          for (let b = 0; b < row.v.length; b += 2) rows.push([row.name, row.v[b], row.v[b + 1]]);
        }
        return rows;
      },
    };
  };

  const lines = (svg, spec, width, height) => {
    const chart = frame(svg, width, height, spec.x, spec.y);
    const { box, px, py } = chart;
    const group = spec.group || 1;
    const xAt = (line, i) => (line.x ? line.x[i] : i * group + (group - 1) / 2);
    const inside = (y) => Math.min(Math.max(y, spec.y.from), spec.y.to);
    for (const mark of spec.rules) rule(svg, chart, mark);
    for (const line of spec.series) {
      if (!line.lo) continue;
      let d = "";
      let from = 0;
      for (let i = 0; i <= line.v.length; ++i) {
        if (i < line.v.length && line.lo[i] !== null) continue;
        if (i > from) {
          for (let k = from; k < i; ++k) d += `${k === from ? "M" : "L"}${at(px(xAt(line, k)))} ${at(py(inside(line.hi[k])))}`;
          for (let k = i - 1; k >= from; --k) d += `L${at(px(xAt(line, k)))} ${at(py(inside(line.lo[k])))}`;
          d += "Z";
        }
        from = i + 1;
      }
      svg.appendChild(node("path", { d, fill: colour(line.colour), "fill-opacity": 0.16 }));
    }
    for (const line of spec.series) {
      let d = "";
      let gap = true;
      line.v.forEach((value, i) => {
        if (value !== null) d += `${gap ? "M" : "L"}${at(px(xAt(line, i)))} ${at(py(inside(value)))}`;
        gap = value === null;
      });
      const path = node("path", { d, stroke: colour(line.colour), fill: "none", "stroke-width": 1.75,
                                  "stroke-linejoin": "round" });
      if (line.dash) path.setAttribute("stroke-dasharray", line.dash);
      svg.appendChild(path);
      if (!line.x && line.v.length <= 80 && box.width / line.v.length > 6) {
        line.v.forEach((value, i) => {
          if (value === null) return;
          svg.appendChild(node("circle", { cx: at(px(xAt(line, i))), cy: at(py(value)), r: 2.2, fill: colour(line.colour) }));
        });
      }
    }
    const name = (i) => (group > 1 ? `iterations ${i * group} to ${(i + 1) * group - 1}` : "iteration " + i);
    const text = (value) => short(value, 4) + (spec.y.suffix || "");
    return {
      legend: spec.series.map((line) => [line.colour, line.dash || "", line.name]),
      tip: (place) => {
        const x = chart.value(place);
        if (spec.series.some((line) => line.x)) {  // a distribution: how many are below x
          if (x < spec.x.from || x > spec.x.to) return null;
          return {
            at: place, head: "at most " + short(x, 4) + (spec.x.suffix || ""),
            rows: spec.series.map((line) => {
              const above = line.x.findIndex((value) => value > x);
              return [line.colour, line.name + ": " + short(above === 0 ? 0 : line.v[(above < 0 ? line.x.length : above) - 1], 3)
                      + (spec.y.suffix || "")];
            }),
          };
        }
        const i = Math.round((x - (group - 1) / 2) / group);
        const shown = spec.series.filter((line) => i >= 0 && i < line.v.length && line.v[i] !== null);
        if (shown.length === 0) return null;
        return {
          at: px(i * group + (group - 1) / 2), head: name(i),
          rows: shown.map((line) => [line.colour, line.name + ": " + text(line.v[i])
                                     + (line.lo && line.hi[i] > line.lo[i] ? ` (${text(line.lo[i])} to ${text(line.hi[i])})` : "")]),
        };
      },
      csv: () => {
        if (spec.series.some((line) => line.x)) {
          const rows = [["series", spec.x.label, spec.y.label]];
          for (const line of spec.series) line.v.forEach((value, i) => rows.push([line.name, line.x[i], value]));
          return rows;
        }
        const length = spec.series.reduce((most, line) => Math.max(most, line.v.length), 0);
        const rows = [["iteration", "to_iteration"]];
        for (const line of spec.series) {
          rows[0].push(line.name);
          if (line.lo) rows[0].push(line.name + " least", line.name + " most");
        }
        for (let i = 0; i < length; ++i) {
          const row = [i * group, (i + 1) * group - 1];
          for (const line of spec.series) {
            row.push(line.v[i]);
            if (line.lo) row.push(line.lo[i], line.hi[i]);
          }
          rows.push(row);
        }
        return rows;
      },
    };
  };

  // States over time: lines between the least and the most that was sampled, and above them ticks where a counter grew.
  // Values are whole steps of spec.top / spec.steps.
  const series = (svg, spec, width, height, span) => {
    const [from, to] = span || [spec.from, spec.to];
    const [timeUnit, timeName] = timeScale(spec.longest);
    const chart = frame(svg, width, height, { from: from / timeUnit, to: to / timeUnit, label: "time, " + timeName },
                        { from: 0, to: spec.top * (spec.ticks.length > 0 ? 1.25 : 1.06), label: spec.label,
                          space: spec.space });
    const { box, px, py } = chart;
    const one = spec.top / spec.steps;
    const length = spec.series.reduce((most, line) => Math.max(most, line.v.length), 0);
    // Points gathered into columns of a pixel, at whole multiples so that nothing flickers on a move.
    const group = Math.max(1, Math.ceil((to - from) / spec.dt / box.width));
    const first = Math.max(0, Math.floor((from - spec.t0) / spec.dt / group));
    const last = Math.min(Math.ceil(length / group) - 1, Math.ceil((to - spec.t0) / spec.dt / group));
    const place = (c) => at(px(Math.min(Math.max(spec.t0 + c * group * spec.dt, from), to) / timeUnit));
    const bounds = (line, c) => {
      let low = Infinity;
      let high = 0;
      for (let i = c * group; i < Math.min((c + 1) * group, line.v.length); ++i) {
        low = Math.min(low, (line.lo || line.v)[i]);
        high = Math.max(high, line.v[i]);
      }
      return [Math.min(low, high) * one, high * one];
    };
    const grown = (tick, c) => {
      let sum = 0;
      for (let i = c * group; i < Math.min((c + 1) * group, tick.v.length); ++i) sum += tick.v[i];
      return sum;
    };
    for (const line of spec.series) {
      let edge = "";
      let back = "";
      let wide = false;
      for (let c = first; c <= last; ++c) {
        const [low, high] = bounds(line, c);
        edge += `${c === first ? "M" : "L"}${place(c)} ${at(py(high))}`;
        back = `L${place(c)} ${at(py(low))}` + back;
        wide = wide || high - low > one;
      }
      if (wide) {
        svg.appendChild(node("path", { d: edge + back + "Z", fill: colour(line.colour), "fill-opacity": 0.35,
                                       stroke: colour(line.colour), "stroke-width": 0.75 }));
      } else if (edge) {
        svg.appendChild(node("path", { d: edge, stroke: colour(line.colour), fill: "none", "stroke-width": 1.5,
                                       "stroke-linejoin": "round" }));
      }
    }
    spec.ticks.forEach((tick, n) => {
      let d = "";
      for (let c = first; c <= last; ++c) if (grown(tick, c) > 0) d += `M${place(c)} ${box.top + n * 9}v7`;
      if (d) svg.appendChild(node("path", { d, stroke: colour(tick.colour), "stroke-width": 1.5 }));
    });
    const words = (low, high) => (high - low > one ? `${short(low, 3)} to ${short(high, 3)}` : short(high, 3));
    return {
      legend: spec.series.map((line) => [line.colour, "", line.name]).concat(
        spec.ticks.map((tick) => [tick.colour, "", tick.name])),
      tip: (x) => {
        const c = Math.floor((chart.value(x) * timeUnit - spec.t0) / spec.dt / group);
        if (c < first || c > last) return null;
        return {
          at: Number(place(c)), head: timeText(spec.t0 + c * group * spec.dt, 5),
          rows: spec.series.map((line) => [line.colour, `${line.name}: ${words(...bounds(line, c))} ${spec.label}`]).concat(
            spec.ticks.map((tick) => [tick.colour, `${tick.name}: ${grown(tick, c)} packets`])),
        };
      },
      csv: () => {
        const rows = [["time_ns"]];
        for (const line of spec.series) rows[0].push(`${line.name} least [${spec.label}]`, `${line.name} most [${spec.label}]`);
        for (const tick of spec.ticks) rows[0].push(tick.name + " [packets]");
        for (let i = 0; i < length; ++i) {
          const time = spec.t0 + i * spec.dt;
          if (time + spec.dt <= from || time >= to) continue;
          const row = [time];
          for (const line of spec.series) row.push(short((line.lo || line.v)[i] * one, 6), short(line.v[i] * one, 6));
          for (const tick of spec.ticks) row.push(tick.v[i]);
          rows.push(row);
        }
        return rows;
      },
      chart, timeUnit,
    };
  };

  const heat = (svg, spec, width, height) => {
    const chart = frame(svg, width, height, spec.x, {}, spec.rows);
    const { box, px } = chart;
    const each = box.height / spec.rows.length;
    const step = (value) => {
      const found = spec.steps.findIndex((most) => value <= most);
      return found < 0 ? spec.steps.length : found;
    };
    const paths = new Array(spec.steps.length + 1).fill("");
    const space = each > 5 ? 1 : 0;  // between rows
    spec.v.forEach((row, n) => {
      const y = box.top + n * each;
      for (let i = 0; i < row.length;) {
        const shade = step(row[i]);
        let end = i + 1;
        while (end < row.length && step(row[end]) === shade) end += 1;
        const from = px(Math.min(i * spec.group, spec.x.to));
        const wide = px(Math.min(end * spec.group, spec.x.to)) - from;
        paths[shade] += `M${at(from)} ${at(y)}h${at(wide)}v${at(each - space)}h${at(-wide)}z`;
        i = end;
      }
    });
    paths.forEach((d, shade) => { if (d) svg.appendChild(node("path", { d, fill: colour("heat-" + shade) })); });
    return {
      legend: spec.steps.map((most, n) => ["heat-" + n, "", (n === 0 ? "up to " : "to ") + most + "×"]).concat(
        [["heat-" + spec.steps.length, "", "beyond " + spec.steps[spec.steps.length - 1] + "×"]]),
      tip: (place, y) => {
        const i = Math.floor(chart.value(place) / spec.group);
        const n = Math.floor((y - box.top) / each);
        if (n < 0 || n >= spec.rows.length || i < 0 || i >= spec.v[n].length) return null;
        const iterations = spec.group > 1 ? `iterations ${i * spec.group} to ${(i + 1) * spec.group - 1}` : "iteration " + i;
        return { at: place, head: iterations, rows: [["heat-" + step(spec.v[n][i]), spec.rows[n] + ": " + short(spec.v[n][i], 4) + "×"]] };
      },
      csv: () => {
        const rows = [["job", "iteration", "to_iteration", "slow-down"]];
        spec.v.forEach((row, n) => row.forEach((value, i) => rows.push(
          [spec.rows[n], i * spec.group, Math.min((i + 1) * spec.group, spec.x.to) - 1, value])));
        return rows;
      },
    };
  };

  // Values with, where they are known, intervals: a row each, a marker a series.
  const dots = (svg, spec, width, height) => {
    const chart = frame(svg, width, height, spec.x, {}, spec.rows);
    const { box, px } = chart;
    const each = box.height / spec.rows.length;
    const count = spec.series.length;
    spec.rows.forEach((_, n) => {
      if (n > 0) svg.appendChild(node("path", { d: `M${box.left} ${at(box.top + n * each)}h${at(box.width)}`, stroke: colour("line") }));
    });
    for (const mark of spec.rules || []) rule(svg, chart, mark);
    spec.series.forEach((series, k) => {
      let marks = "";
      let bars = "";
      series.v.forEach((value, n) => {
        if (value === null || value === undefined) return;
        const x = px(value);
        const y = box.top + (n + (k + 1) / (count + 1)) * each;
        const r = Math.min(4, Math.max(2, each / (count + 1) / 2));
        marks += [`M${at(x - r)} ${at(y)}a${at(r)} ${at(r)} 0 1 0 ${at(2 * r)} 0a${at(r)} ${at(r)} 0 1 0 ${at(-2 * r)} 0z`,
                  `M${at(x - r)} ${at(y - r)}h${at(2 * r)}v${at(2 * r)}h${at(-2 * r)}z`,
                  `M${at(x)} ${at(y - 1.3 * r)}l${at(1.3 * r)} ${at(1.3 * r)}l${at(-1.3 * r)} ${at(1.3 * r)}l${at(-1.3 * r)} ${at(-1.3 * r)}z`,
                  `M${at(x)} ${at(y - 1.2 * r)}l${at(1.2 * r)} ${at(2.2 * r)}h${at(-2.4 * r)}z`][k % 4];
        const ci = series.ci && series.ci[n];
        if (ci) bars += `M${at(px(Math.max(spec.x.from, value - ci)))} ${at(y)}H${at(px(Math.min(spec.x.to, value + ci)))}`;
      });
      if (bars) svg.appendChild(node("path", { d: bars, stroke: colour(series.colour), "stroke-width": 1.5 }));
      svg.appendChild(node("path", { d: marks, fill: colour(series.colour) }));
    });
    const text = (value) => short(value, 4) + (spec.x.suffix || "");
    return {
      legend: spec.series.map((series) => [series.colour, "", series.name]),
      tip: (place, y) => {
        const n = Math.floor((y - box.top) / each);
        if (n < 0 || n >= spec.rows.length) return null;
        return {
          at: place, head: spec.rows[n],
          rows: spec.series.filter((series) => series.v[n] !== null && series.v[n] !== undefined).map((series) => [
            series.colour, series.name + ": " + text(series.v[n]) + (series.ci && series.ci[n] ? " ± " + short(series.ci[n], 2) : "")]),
        };
      },
      csv: () => {
        const rows = [[""]];
        for (const series of spec.series) rows[0].push(series.name, ...(series.ci ? [series.name + " ci95"] : []));
        spec.rows.forEach((name, n) => {
          const row = [name];
          for (const series of spec.series) row.push(series.v[n], ...(series.ci ? [series.ci[n]] : []));
          rows.push(row);
        });
        return rows;
      },
    };
  };

  const KINDS = { bands, lanes, lines, series, heat, dots };

  // ---- an element's chart, its tip and its exports ----

  const drawn = new Map();  // element -> {spec, span, chart, width}

  const svgOf = (width, height) => node("svg", {
    xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}`,
    "font-size": FONT, "font-family": family(),
  });

  const draw = (element, spec, span) => {
    const width = Math.floor(element.clientWidth);
    const height = Math.floor(element.clientHeight);
    const before = drawn.get(element);
    const state = before || { element };
    Object.assign(state, { spec, span, width });
    drawn.set(element, state);
    if (width < 40 || height < 40) return state;
    const svg = svgOf(width, height);
    state.chart = KINDS[spec.kind](svg, spec, width, height, span);
    if (state.svg) state.svg.replaceWith(svg);
    else element.prepend(svg);
    state.svg = svg;
    if (!before) {
      addTip(state);
      addExports(state);
    }
    return state;
  };

  const addTip = (state) => {
    const box = document.createElement("div");
    const cursor = document.createElement("div");
    box.className = "tip";
    cursor.className = "cursor";
    const hide = () => { box.hidden = cursor.hidden = true; };
    hide();
    state.element.append(cursor, box);
    state.element.addEventListener("pointermove", (event) => {
      const area = state.element.getBoundingClientRect();
      const shown = state.chart && state.chart.tip(event.clientX - area.left, event.clientY - area.top);
      if (!shown) return hide();
      box.hidden = cursor.hidden = false;
      cursor.style.left = shown.at + "px";
      box.textContent = shown.head;
      for (const [shade, text] of shown.rows) {
        const row = document.createElement("div");
        if (shade) {
          const mark = document.createElement("i");
          mark.className = "swatch";
          mark.style.background = colour(shade);
          row.append(mark);
        }
        row.append(text);
        box.appendChild(row);
      }
      const left = shown.at + 12 > area.width - box.offsetWidth ? shown.at - 12 - box.offsetWidth : shown.at + 12;
      box.style.left = Math.max(0, left) + "px";
    });
    state.element.addEventListener("pointerleave", hide);
  };

  // The chart with its title and legend, on its own: without variables, so that every program reads it.
  const standalone = (state) => {
    const figure = state.element.closest("figure, section");
    const caption = figure && figure.querySelector("figcaption, h2");
    const title = [data.title, caption ? caption.textContent : ""].filter((text) => text).join(": ");
    const entries = state.chart.legend;
    const width = state.width;
    const places = [];
    let x = 8;
    let row = 0;
    for (const [, , name] of entries) {
      const wide = measure(name) + 34;
      if (x > 8 && x + wide > width) {
        x = 8;
        row += 1;
      }
      places.push([x, row]);
      x += wide;
    }
    const head = 24 + (entries.length ? (row + 1) * LINE + 4 : 0);
    const height = Math.floor(state.element.clientHeight) + head;
    const svg = svgOf(width, height);
    svg.append(node("rect", { width: "100%", height: "100%", fill: colour("paper") }),
               node("text", { x: 8, y: 17, fill: colour("ink"), "font-weight": 600 }, shortened(title, width - 16)));
    entries.forEach(([shade, dash, name], n) => {
      const [left, line] = places[n];
      const y = 24 + line * LINE;
      svg.append(dash ? node("path", { d: `M${left} ${y + 8}h14`, stroke: colour(shade), "stroke-width": 2, "stroke-dasharray": dash })
                      : node("rect", { x: left, y: y + 3, width: 10, height: 10, fill: colour(shade) }),
                 node("text", { x: left + 18, y: y + 12, fill: colour("ink") }, name));
    });
    const group = node("g", { transform: `translate(0 ${head})` });
    for (const part of state.svg.childNodes) group.append(part.cloneNode(true));
    svg.append(group);
    const text = new XMLSerializer().serializeToString(svg).replace(/var\((--[\w-]+)\)/g, (_, name) => style(name));
    return { text, width, height };
  };

  const csvOf = (state) => state.chart.csv().map((row) => row.map((value) => {
    let text = value === null || value === undefined ? "" : String(value);
    if (/^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text))) text = "'" + text;  // no formula for a spreadsheet
    return /[",\r\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
  }).join(",")).join("\r\n") + "\r\n";

  const pngOf = (state) => new Promise((resolve, reject) => {
    const { text, width, height } = standalone(state);
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = 2 * width;
      canvas.height = 2 * height;
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("no image"))), "image/png");
    };
    image.onerror = () => reject(new Error("no image"));
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
  });

  const save = (blob, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };

  const EXPORTS = {
    svg: async (state) => new Blob([standalone(state).text], { type: "image/svg+xml" }),
    png: pngOf,
    csv: async (state) => new Blob([csvOf(state)], { type: "text/csv" }),
  };

  const addExports = (state) => {
    const bar = document.createElement("div");
    bar.className = "export";
    bar.append("Save as ");
    for (const kind of Object.keys(EXPORTS)) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = kind.toUpperCase();
      button.title = "Save this chart as " + kind.toUpperCase();
      button.addEventListener("click", async () => {
        save(await EXPORTS[kind](state), `${data.experiment}-${state.spec.name}.${kind}`);
      });
      bar.append(button);
    }
    state.element.after(bar);
  };

  const redraw = (element) => {
    const state = drawn.get(element);
    if (state.width !== Math.floor(element.clientWidth)) draw(element, state.spec, state.span);
  };
  const observer = new ResizeObserver((entries) => { for (const { target } of entries) redraw(target); });
  const show = (element, spec, span) => {
    const state = draw(element, spec, span);
    observer.observe(element);
    return state;
  };

  for (const element of document.querySelectorAll("[data-chart]")) show(element, data.charts[Number(element.dataset.chart)]);

  return { data, show, short, rateScale, exports: EXPORTS, drawn };
})();
