"use strict";
// A tree that opens and closes: which cards are shown, and where each stands.
// Roots at the top, one layer below the other. Closed children stand in columns under their parent, so that
// thirty passages take the room of a block instead of a line nobody can read; when much is open, whole
// families stand in such columns, indented like an outline.
ragkit.tree = () => {
  const { nodes, edges, labelOf, text } = ragkit;
  const CARD = 172;
  const GAP = 26;
  const ROW = 10;
  const DROP = 44;
  const RAIL = 18;
  const BATCH = 30;
  const ROOT = -1;
  const SMALLEST = 0.6; // scale at which cards can be read

  const parentEdge = choosePrimaryParents();
  const children = new Map([[ROOT, []]]);
  nodes.forEach((_, i) => children.set(i, []));
  nodes.forEach((_, i) => children.get(parentOf(i)).push(i));
  const litBelow = new Set();
  nodes.forEach((node, i) => {
    for (let at = node.lit ? i : ROOT; at !== ROOT && !litBelow.has(at); at = parentOf(at)) litBelow.add(at);
  });
  children.get(ROOT).sort((a, b) => children.get(b).length - children.get(a).length || a - b);

  const cards = new Map();
  const shown = new Map();
  const wanted = new Set(litBelow);
  let open = new Set([ROOT]);
  let view = [1, 1];
  let tallest = 500;
  let outline = 1; // families of fewer layers stand in columns

  // Child -> number of the edge it hangs on: lit edges first, then the heaviest, then the first given.
  // Cycles are cut where they would close.
  function choosePrimaryParents() {
    const rank = (e) => [edges[e].lit ? 1 : 0, edges[e].weight];
    const best = new Map();
    edges.forEach((edge, e) => {
      const [lit, weight] = rank(e);
      const [oldLit, oldWeight] = best.has(edge.target) ? rank(best.get(edge.target)) : [-1, -1];
      if (edge.source !== edge.target && (lit > oldLit || (lit === oldLit && weight > oldWeight)))
        best.set(edge.target, e);
    });
    const state = new Map();
    nodes.forEach((_, start) => {
      const path = [];
      let at = start;
      while (best.has(at) && !state.has(at)) {
        state.set(at, "on path");
        path.push(at);
        at = edges[best.get(at)].source;
      }
      if (state.get(at) === "on path") best.delete(at);
      path.forEach((i) => state.set(i, "done"));
    });
    return best;
  }

  function parentOf(i) {
    return parentEdge.has(i) ? edges[parentEdge.get(i)].source : ROOT;
  }

  function ancestors(i) {
    const found = [];
    for (let at = parentOf(i); at !== ROOT; at = parentOf(at)) found.push(at);
    return found;
  }

  // The children to draw: all of them, or a batch with the lit and the wanted ones in it, then a card that
  // counts the others.
  function visibleChildren(i) {
    const all = children.get(i);
    const limit = shown.get(i) ?? BATCH;
    if (all.length <= limit + 1) return all;
    const chosen = new Set(all.filter((child) => wanted.has(child)));
    for (const child of all) {
      if (chosen.size >= limit) break;
      chosen.add(child);
    }
    return chosen.size === all.length ? all : [...all.filter((child) => chosen.has(child)), `more ${i}`];
  }

  const isMore = (key) => typeof key === "string";
  const moreParent = (key) => Number(key.slice(5));
  const isOpen = (key) => !isMore(key) && open.has(key) && children.get(key).length > 0;

  function describe(key) {
    if (isMore(key)) {
      const parent = moreParent(key);
      const hidden = children.get(parent).length - (visibleChildren(parent).length - 1);
      return { lines: [`+ ${hidden.toLocaleString("en")} more`], height: 30 };
    }
    const inside = children.get(key).length;
    if (!cards.has(key)) cards.set(key, text.wrap(labelOf(key), CARD - 26, 12, 3, inside > 0));
    const lines = [...cards.get(key)];
    if (inside) lines.push(`${open.has(key) ? "▾" : "▸"} ${inside.toLocaleString("en")}`);
    return { lines, height: 16 * lines.length + 14 };
  }

  // Everything shown, parents before children, with its children and how many open layers it has below it.
  // Loops, not recursion: a chain of thousands is a tree too.
  function family() {
    const order = [];
    const kids = new Map();
    const stack = [ROOT];
    while (stack.length) {
      const key = stack.pop();
      order.push(key);
      kids.set(key, isOpen(key) ? visibleChildren(key) : []);
      for (const child of [...kids.get(key)].reverse()) stack.push(child);
    }
    const layers = new Map();
    for (const key of [...order].reverse())
      layers.set(
        key,
        kids.get(key).reduce((most, kid) => Math.max(most, layers.get(kid) + 1), 0),
      );
    return { order, kids, layers };
  }

  // The rows of an outline: a card and all that is open below it, each with its indent.
  function rowsOf(key, kids) {
    const rows = [];
    const stack = [[key, 0]];
    while (stack.length) {
      const [at, indent] = stack.pop();
      rows.push([at, indent]);
      for (const child of [...kids.get(at)].reverse()) stack.push([child, indent + 1]);
    }
    return rows;
  }

  function columnsFor(list, kids, box) {
    const columns = [];
    let filled = 0;
    for (const child of list) {
      const rows = rowsOf(child, kids);
      const tall = rows.reduce((sum, [key]) => sum + box.get(key).height + ROW, 0);
      if (!columns.length || filled + tall > tallest) {
        columns.push([]);
        filled = 0;
      }
      columns.at(-1).push(...rows);
      filled += tall;
    }
    return columns;
  }

  function layout() {
    const { order, kids, layers } = family();
    // Of each family the members with much below them stand side by side, each over its own block; the others
    // fill columns beside them, unless they are few enough for a row.
    const box = new Map();
    for (const key of [...order].reverse()) {
      const low = kids.get(key).filter((child) => layers.get(child) < outline);
      const stacked = low.length > (key === ROOT && outline < Infinity ? 6 : 1);
      const slots = stacked ? kids.get(key).filter((child) => layers.get(child) >= outline) : kids.get(key);
      const columns = stacked ? columnsFor(low, kids, box) : [];
      const widths = [...slots.map((child) => box.get(child).width), ...columns.map(columnWidth)];
      const inner = widths.reduce((sum, width) => sum + width + GAP, -GAP);
      const card = key === ROOT ? { lines: [], height: 0 } : describe(key);
      box.set(key, { ...card, slots, columns, inner, width: Math.max(CARD, inner) });
    }
    const tops = new Map([[ROOT, { left: 0, top: -DROP }]]);
    const placed = new Map();
    const routes = new Map();
    for (const key of order) {
      if (!tops.has(key)) continue;
      const { left, top } = tops.get(key);
      const { width, height, slots, columns, inner } = box.get(key);
      if (key !== ROOT) placed.set(key, { x: left + width / 2, y: top + height / 2 });
      const below = top + height + DROP;
      const bus = below - DROP / 2;
      let x = left + (width - inner) / 2;
      for (const child of slots) {
        tops.set(child, { left: x, top: below });
        routes.set(child, { rail: x + box.get(child).width / 2, bus });
        x += box.get(child).width + GAP;
      }
      for (const column of columns) {
        let y = below;
        for (const [child, indent] of column) {
          const tall = box.get(child).height;
          const edge = x + RAIL * (indent + 1);
          placed.set(child, { x: edge + CARD / 2, y: y + tall / 2 });
          routes.set(child, { rail: edge - RAIL + 4, bus: indent ? null : bus });
          y += tall + ROW;
        }
        x += columnWidth(column) + GAP;
      }
    }
    return [...placed].map(([key, position]) => ({
      key,
      ...position,
      width: CARD,
      height: box.get(key).height,
      lines: box.get(key).lines,
      parent: isMore(key) ? moreParent(key) : parentOf(key),
      edge: isMore(key) ? null : (parentEdge.get(key) ?? null),
      route: routes.get(key),
      closed: !isMore(key) && children.get(key).length > 0 && !open.has(key),
    }));
  }

  const columnWidth = (column) => CARD + RAIL * (1 + column.reduce((most, [, indent]) => Math.max(most, indent), 0));

  // How large everything shown can be drawn in the view, with the shape of columns that suits it best. What is too much
  // to be read at once should be no wider than the view, so that it is read by moving down.
  function zoom() {
    let best = [0, tallest, outline];
    let narrow = best;
    for (const depth of [1, 2, 3, 4, 5]) {
      if (depth > 3 && (best[0] >= SMALLEST || narrow[0])) break;
      for (const height of [250, 400, 600, 900, 1400, 2200, 3500, 6000]) {
        [tallest, outline] = [height, depth];
        const [scale, across] = fitting(layout());
        if (across >= SMALLEST && scale > narrow[0]) narrow = [scale, height, depth];
        // An outline is harder to read than a tree: only where it gains much, or the tree does not fit the view.
        const gain = depth > best[2] && best[0] > SMALLEST ? 1.25 : 1.02;
        if (scale > best[0] * gain) best = [scale, height, depth];
      }
      if (best[0] > 0.68) break;
    }
    if (best[0] < SMALLEST && narrow[0]) best = narrow;
    [, tallest, outline] = best;
    return best[0];
  }

  function fitting(boxes) {
    let [left, right, bottom] = [Infinity, -Infinity, 0];
    for (const { x, y, width, height } of boxes) {
      left = Math.min(left, x - width / 2);
      right = Math.max(right, x + width / 2);
      bottom = Math.max(bottom, y + height / 2);
    }
    const across = view[0] / (right - left || 1);
    return [Math.min(across, view[1] / (bottom || 1)), across];
  }

  // Open layer after layer while all of it can be read at once, then the way to whatever is lit.
  function openReadable(width, height, smallest) {
    view = [width, height];
    let layer = children.get(ROOT);
    while (layer.length) {
      const inner = layer.filter((i) => children.get(i).length);
      if (!inner.length) break;
      inner.forEach((i) => open.add(i));
      if (family().order.length > 400 || zoom() < smallest) {
        inner.forEach((i) => open.delete(i));
        break;
      }
      layer = inner.flatMap((i) => children.get(i));
    }
    litBelow.forEach(reveal);
    zoom();
  }

  function reveal(i) {
    [i, ...ancestors(i)].forEach((at) => {
      open.add(parentOf(at));
      wanted.add(at);
    });
  }

  // As one indented outline, which is read by moving down. Layer by layer, as long as it can still be moved smoothly.
  function openAll() {
    let layer = [ROOT];
    while (layer.length && family().order.length < 1500) {
      layer.forEach((i) => open.add(i));
      layer = layer.flatMap((i) => visibleChildren(i).filter((child) => !isMore(child) && children.get(child).length));
    }
    [tallest, outline] = [Infinity, Infinity];
  }

  // Only the way to what is lit; returns how to get back.
  function openLit() {
    const before = [open, tallest, outline];
    open = new Set([ROOT]);
    litBelow.forEach(reveal);
    zoom();
    return () => ([open, tallest, outline] = before);
  }

  return {
    layout,
    openReadable,
    openAll,
    openLit,
    closeAll: () => {
      open = new Set([ROOT]);
      shown.clear();
      zoom();
    },
    reveal,
    ancestors,
    isMore,
    isOpen,
    childCount: (i) => children.get(i).length,
    toggle: (i) => (open.has(i) ? open.delete(i) : open.add(i)),
    more: (key) => shown.set(moreParent(key), (shown.get(moreParent(key)) ?? BATCH) + 2 * BATCH),
  };
};
