// What the page of results adds to charts.js: a run that can be looked into, and the table of the link that is chosen.
"use strict";

(() => {
  const { data, show, short, rateScale } = mltcpCharts;

  // ---- the whole run ----

  const explorer = document.getElementById("explorer");
  if (explorer) {
    const looked = document.getElementById("looked-into");
    const panels = [...looked.querySelectorAll("[data-panel]")];
    const buttons = [...document.querySelectorAll("#pick button")];
    let spec = null;
    let shown = [];  // [element, spec] of all charts of the run, one time for all of them
    let from = 0;
    let to = 1;
    const look = (a, b) => {
      const width = Math.min(Math.max(b - a, 8 * spec.dt), spec.to - spec.from);
      from = Math.min(Math.max(a, spec.from), spec.to - width);
      to = from + width;
      for (const [element, of] of shown) show(element, { ...of, space: 56 }, [from, to]);
    };
    const all = () => look(spec.from, spec.to);
    const pick = (button) => {
      spec = data.charts[Number(button.dataset.of)];
      const charts = new Map(button.dataset.panels.split(" ").filter((word) => word).map((word) => word.split(":")));
      shown = [[explorer, spec]];
      for (const panel of panels) {
        const there = charts.has(panel.dataset.panel);
        panel.closest("figure").hidden = !there;
        if (there) shown.push([panel, data.charts[Number(charts.get(panel.dataset.panel))]]);
      }
      for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
      all();
    };
    // By `factor`, with `still`, a share of the width, where it is.
    const zoom = (factor, still) => {
      const middle = from + (to - from) * still;
      const width = (to - from) * factor;
      look(middle - width * still, middle + width * (1 - still));
    };
    const moves = {
      left: () => look(from - (to - from) / 2, to - (to - from) / 2),
      right: () => look(from + (to - from) / 2, to + (to - from) / 2),
      in: () => zoom(0.5, 0.5),
      out: () => zoom(2, 0.5),
      all,
    };
    for (const button of buttons) button.addEventListener("click", () => pick(button));
    for (const button of document.querySelectorAll("#move button")) {
      button.addEventListener("click", () => moves[button.dataset.move]());
    }
    pick(buttons.find((button) => button.getAttribute("aria-pressed") === "true") || buttons[buttons.length - 1]);

    const KEYS = {
      ArrowLeft: () => look(from - (to - from) / 8, to - (to - from) / 8),
      ArrowRight: () => look(from + (to - from) / 8, to + (to - from) / 8),
      PageUp: moves.left, PageDown: moves.right, "+": moves.in, "=": moves.in, "-": moves.out, 0: all, Escape: all,
      Home: () => look(spec.from, spec.from + to - from), End: () => look(spec.to - (to - from), spec.to),
    };
    looked.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey || event.target !== looked || !KEYS[event.key]) return;
      event.preventDefault();
      KEYS[event.key]();
    });

    // A time of the run below a place, or the share of a chart's width.
    const axisOf = (element) => mltcpCharts.drawn.get(element).chart;
    const timeAt = (element, x) => axisOf(element).chart.value(x) * axisOf(element).timeUnit;
    for (const element of [explorer, ...panels]) {
      const mark = document.createElement("div");
      mark.className = "chosen-stretch";
      mark.hidden = true;
      element.append(mark);
      let begun = null;
      const place = (event) => event.clientX - element.getBoundingClientRect().left;
      element.addEventListener("pointerdown", (event) => {
        if (event.button !== 0 || event.pointerType === "touch") return;
        begun = place(event);
        element.setPointerCapture(event.pointerId);
        looked.focus({ preventScroll: true });
      });
      element.addEventListener("pointermove", (event) => {
        if (begun === null) return;
        mark.hidden = false;
        mark.style.left = Math.min(begun, place(event)) + "px";
        mark.style.width = Math.abs(place(event) - begun) + "px";
      });
      element.addEventListener("pointerup", (event) => {
        if (begun === null) return;
        const [a, b] = [begun, place(event)].sort((x, y) => x - y);
        begun = null;
        mark.hidden = true;
        if (b - a >= 4) look(timeAt(element, a), timeAt(element, b));
      });
      element.addEventListener("dblclick", all);
      // The page's own scrolling is not taken away from whoever only passes by.
      element.addEventListener("wheel", (event) => {
        if (event.deltaY === 0 || !(event.ctrlKey || document.activeElement === looked)) return;
        event.preventDefault();
        const still = (timeAt(element, place(event)) - from) / (to - from);
        zoom(event.deltaY < 0 ? 0.8 : 1.25, Math.min(Math.max(still, 0), 1));
      }, { passive: false });
    }
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
