// What the page of results adds to charts.js: a run that can be looked into, and the table of the link that is chosen.
"use strict";

(() => {
  const { data, show, short, rateScale } = mltcpCharts;

  // ---- the whole run ----

  const explorer = document.getElementById("explorer");
  if (explorer) {
    const buttons = [...document.querySelectorAll("#pick button")];
    let spec = null;
    let from = 0;
    let to = 1;
    const look = (a, b) => {
      const width = Math.min(Math.max(b - a, 8 * spec.dt), spec.to - spec.from);
      from = Math.min(Math.max(a, spec.from), spec.to - width);
      to = from + width;
      show(explorer, spec, [from, to]);
    };
    const all = () => look(spec.from, spec.to);
    const pick = (button) => {
      spec = data.charts[Number(button.dataset.of)];
      for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
      all();
    };
    const moves = {
      left: () => look(from - (to - from) / 2, to - (to - from) / 2),
      right: () => look(from + (to - from) / 2, to + (to - from) / 2),
      in: () => look(from + (to - from) / 4, to - (to - from) / 4),
      out: () => look(from - (to - from) / 2, to + (to - from) / 2),
      all,
    };
    for (const button of buttons) button.addEventListener("click", () => pick(button));
    for (const button of document.querySelectorAll("#move button")) {
      button.addEventListener("click", () => moves[button.dataset.move]());
    }
    pick(buttons.find((button) => button.getAttribute("aria-pressed") === "true") || buttons[buttons.length - 1]);

    const mark = document.createElement("div");
    mark.className = "chosen-stretch";
    mark.hidden = true;
    explorer.append(mark);
    let begun = null;
    const place = (event) => event.clientX - explorer.getBoundingClientRect().left;
    explorer.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || event.pointerType === "touch") return;
      begun = place(event);
      explorer.setPointerCapture(event.pointerId);
    });
    explorer.addEventListener("pointermove", (event) => {
      if (begun === null) return;
      mark.hidden = false;
      mark.style.left = Math.min(begun, place(event)) + "px";
      mark.style.width = Math.abs(place(event) - begun) + "px";
    });
    explorer.addEventListener("pointerup", (event) => {
      if (begun === null) return;
      const [a, b] = [begun, place(event)].sort((x, y) => x - y);
      begun = null;
      mark.hidden = true;
      if (b - a < 4) return;
      const { chart, timeUnit } = mltcpCharts.drawn.get(explorer).chart;
      look(chart.value(a) * timeUnit, chart.value(b) * timeUnit);
    });
    explorer.addEventListener("dblclick", all);
  }

  // ---- the links ----

  const picker = document.getElementById("link-picker");
  if (picker && data.links) {
    const table = document.getElementById("link-table");
    const count = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, "\u202f");
    const scaled = (value, units) => {
      let unit = 0;
      while (value >= 999.5 && unit + 1 < units.length) {
        value /= 1000;
        unit += 1;
      }
      return short(value, 3) + " " + units[unit];
    };
    const bytes = (value) => scaled(value, ["B", "kB", "MB", "GB", "TB"]);
    const rate = (bps) => {
      if (!bps) return "none";
      const [scale, unit] = rateScale(bps);
      return short(bps / scale, 3) + " " + unit;
    };
    const columns = ["Policy", "Rate", "Link used", "ECN marks", "Drops", "Longest queue"];
    const extra = (index, name) => { if (data.links.links.some((link) => link.runs.some((run) => run && run[index] > 0))) columns.push(name); };
    extra(4, "Pauses");
    extra(5, "Contended");
    const cell = (row, column, text, header) => {
      const made = document.createElement(header ? "th" : "td");
      if (header) made.scope = "row";
      else made.dataset.label = column;
      const span = document.createElement("span");
      span.textContent = text;
      made.append(span);
      row.append(made);
      return span;
    };
    const choose = () => {
      const link = data.links.links[Number(picker.value)];
      const body = table.tBodies[0];
      body.replaceChildren();
      let drawn = false;
      link.runs.forEach((run, r) => {
        const row = body.insertRow();
        row.className = "first";
        cell(row, "Policy", data.links.labels[r], true);
        drawn = drawn || data.links.recorded[r] === link.name;
        if (!run) {
          for (const column of columns.slice(1)) cell(row, column, "–");
          return;
        }
        cell(row, "Rate", rate(link.rate));
        const used = cell(row, "Link used", link.rate ? short(100 * run[0], 3) + "%" : "–");
        const bar = document.createElement("i");
        bar.className = "gauge";
        bar.style.setProperty("--share", run[0]);
        if (link.rate) used.append(bar);
        cell(row, "ECN marks", count(run[1]));
        cell(row, "Drops", count(run[2]));
        cell(row, "Longest queue", bytes(run[3]));
        if (columns.includes("Pauses")) cell(row, "Pauses", count(run[4]));
        if (columns.includes("Contended")) cell(row, "Contended", short(run[5] / 1e6, 3) + " ms");
      });
      document.getElementById("link-note").hidden = drawn;
    };
    const head = table.tHead.insertRow();
    for (const column of columns) {
      const made = document.createElement("th");
      made.scope = "col";
      made.textContent = column;
      head.append(made);
    }
    data.links.links.forEach((link, n) => {
      const option = document.createElement("option");
      option.value = n;
      option.textContent = link.name;
      picker.append(option);
    });
    picker.addEventListener("change", choose);
    choose();
  }
})();
