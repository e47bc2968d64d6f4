"use strict";
// A heat map as a real table: rows against columns, the value on hover, row and column selectable by their heads.
ragkit.view = (stage, on) => {
  const { data, nodes, labelOf, element, number, theme, mix, text } = ragkit;
  const { rows: rowCount, values, label } = data.view;
  const MOST_COLUMNS = 240;
  const MOST_ROWS = 400;
  const finite = values.flatMap((row) => row.filter((value) => value !== null));
  const low = finite.reduce((a, b) => Math.min(a, b), Infinity);
  const high = finite.reduce((a, b) => Math.max(a, b), -Infinity);
  const columnNode = (c) => rowCount + c;
  const peak = (list) => list.reduce((most, value) => (value === null ? most : Math.max(most, value)), -Infinity);
  const rowIds = strongest(values.length, MOST_ROWS, (r) => [nodes[r].lit, peak(values[r])]);
  const columnIds = strongest(nodes.length - rowCount, MOST_COLUMNS, (c) => [
    nodes[columnNode(c)].lit,
    peak(values.map((row) => row[c])),
  ]);
  let cell = 0;
  let room = 0; // for the names of rows
  let selected = null;
  let focus = null;
  let heads = new Map();

  // The lit ones and those with the highest values, in the given order.
  function strongest(count, most, rank) {
    const all = Array.from({ length: count }, (_, i) => i);
    if (count <= most) return all;
    const ranks = all.map(rank);
    const order = [...all].sort(
      (a, b) => Number(ranks[b][0] ?? 0) - Number(ranks[a][0] ?? 0) || ranks[b][1] - ranks[a][1] || a - b,
    );
    return order.slice(0, most).sort((a, b) => a - b);
  }

  const share = (value) => (high > low ? (value - low) / (high - low) : 1);
  const scroller = element("div", { class: "scroll" });
  stage.append(scroller);

  function headCell(i, isRow) {
    const name = element(
      "button",
      { type: "button", dir: "auto", onclick: () => on.select(i) },
      isRow || cell >= 12 ? text.oneLine(labelOf(i), isRow ? room : 118, 12, nodes[i].lit) : "",
    );
    name.addEventListener("mousemove", (event) => on.hover(i, event));
    name.addEventListener("mouseleave", () => on.hover(null));
    const made = element("th", { scope: isRow ? "row" : "col", class: nodes[i].lit ? "lit" : "" }, name);
    heads.set(i, made);
    return made;
  }

  function draw() {
    heads = new Map();
    const [strong, weak] = [theme("heat"), theme("surface")];
    const head = element(
      "tr",
      {},
      element("td", { class: "corner" }),
      ...columnIds.map((c) => headCell(columnNode(c), false)),
    );
    const body = rowIds.map((r) => {
      const made = element("tr", {}, headCell(r, true));
      for (const c of columnIds) {
        const value = values[r][c];
        const box = element("td", { "data-r": r, "data-c": c, class: value === null ? "empty" : "" });
        if (value !== null) box.style.backgroundColor = mix(strong, weak, 0.04 + 0.96 * share(value));
        made.append(box);
      }
      return made;
    });
    const table = element("table", { class: "heat" }, element("thead", {}, head), element("tbody", {}, ...body));
    table.style.setProperty("--cell", cell + "px");
    table.addEventListener("mousemove", (event) => {
      const { r, c } = event.target.dataset;
      if (c === undefined) return;
      const value = values[r][c];
      on.hoverText(
        `${labelOf(Number(r))} × ${labelOf(columnNode(Number(c)))}`,
        event,
        `${label || "value"}: ${value === null ? "none" : number(value)}`,
      );
    });
    table.addEventListener("mouseleave", () => on.hover(null));
    table.addEventListener("click", (event) => {
      const { c } = event.target.dataset;
      if (c !== undefined) on.select(columnNode(Number(c)));
    });
    scroller.replaceChildren(finite.length ? scale() : "", table);
    mark();
  }

  // The ends of the scale, to a thousandth of its length.
  function rounded(value) {
    const digits = high > low ? Math.min(12, Math.max(0, 3 - Math.ceil(Math.log10(high - low)))) : 3;
    return String(Number(value.toFixed(digits)));
  }

  function scale() {
    const bar = element("span", { class: "bar" });
    bar.style.backgroundImage = `linear-gradient(to right, ${mix(theme("heat"), theme("surface"), 0.04)}, ${theme("heat")})`;
    return element(
      "div",
      { class: "scale" },
      rounded(low),
      bar,
      rounded(high),
      element("span", { dir: "auto" }, label),
    );
  }

  function mark() {
    heads.forEach((made, i) => {
      made.classList.toggle("selected", i === selected);
      made.classList.toggle("faded", focus !== null && !focus.has(i));
    });
    scroller.querySelectorAll("td[data-c]").forEach((box) => {
      const [r, c] = [Number(box.dataset.r), columnNode(Number(box.dataset.c))];
      box.classList.toggle("chosen", selected === r || selected === c);
    });
  }

  // Cells as large as the window allows; what is left of its width is for the names of the rows.
  function fitCell() {
    const free = (stage.clientWidth - Math.min(200, stage.clientWidth * 0.3) - 40) / Math.max(1, columnIds.length);
    const tall = (stage.clientHeight - 190) / Math.max(1, rowIds.length);
    cell = Math.max(15, Math.min(64, Math.floor(free), Math.max(34, Math.floor(tall))));
    const least = Math.min(190, stage.clientWidth * 0.3);
    room = Math.max(least, Math.min(420, stage.clientWidth - (cell + 1) * columnIds.length - 60));
  }

  function missing(i) {
    const ids = i < rowCount ? rowIds : columnIds;
    const at = i < rowCount ? i : i - rowCount;
    if (ids.includes(at)) return false;
    ids.push(at);
    ids.sort((a, b) => a - b);
    return true;
  }

  function report() {
    const part = (shown, all, word) =>
      shown < all ? `${shown} of ${all.toLocaleString("en")} ${word}s` : `${all} ${word}${all === 1 ? "" : "s"}`;
    const hidden = rowIds.length + columnIds.length < nodes.length;
    on.status(
      `${part(rowIds.length, rowCount, "row")}, ${part(columnIds.length, nodes.length - rowCount, "column")}${hidden ? " (highest values)" : ""}`,
    );
  }

  fitCell();
  draw();
  report();
  let zoomed = false;

  return {
    select(i) {
      selected = i;
      if (i !== null && missing(i)) {
        draw();
        report();
      } else mark();
    },
    reveal: (i) => heads.get(i)?.scrollIntoView({ block: "nearest", inline: "center" }),
    family: () => null,
    edgesOf: () => [],
    setLit() {},
    setFocus(keys) {
      focus = keys;
      mark();
    },
    fit() {
      zoomed = false;
      fitCell();
      draw();
    },
    zoom(factor) {
      zoomed = true;
      cell = Math.max(5, Math.min(60, cell * factor));
      draw();
    },
    retheme: draw,
    resize() {
      if (zoomed) return;
      fitCell();
      draw();
    },
    actions: () => [],
    buttons: [],
  };
};
