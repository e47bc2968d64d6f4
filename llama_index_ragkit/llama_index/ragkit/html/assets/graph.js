"use strict";
// The picture of a tree or a graph: Cytoscape draws what tree.js or force.js says is shown.
ragkit.view = (stage, on) => {
  const { data, nodes, edges, edgesOf } = ragkit;
  const kind = data.view.kind;
  const isTree = kind === "tree";
  const model = isTree ? ragkit.tree() : ragkit.force();
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const elements = ragkit.elements(isTree, model);
  const litEdges = [...edges.keys()].filter((e) => edges[e].lit);
  const state = {
    selected: null,
    focus: null,
    litOnly: false,
    weight: (i) => (isTree ? 1000 * nodes[i].level + model.childCount(i) : -model.rank(i)),
  };
  let back = null;

  const cy = cytoscape({
    container: stage,
    style: ragkit.style(kind),
    minZoom: 0.02,
    maxZoom: 2.5,
    boxSelectionEnabled: false,
    autoungrabify: isTree,
    autounselectify: true,
    layout: { name: "preset" },
  });
  const rename = ragkit.names(cy, isTree, state);
  const element = (key) => cy.getElementById(`n${key}`);
  const keyOf = (node) => node.data("key");

  function drawTree() {
    const boxes = model.layout();
    const at = new Map(boxes.map((box) => [box.key, box]));
    cy.elements().remove();
    cy.add(boxes.flatMap((box) => elements.card(box, at.get(box.parent))));
    drawFurtherParents();
  }

  // A passage that several summaries share: lines to its further parents are drawn when it is selected or they are lit.
  function drawFurtherParents() {
    cy.edges(".second").remove();
    const wanted = new Set([...litEdges, ...(state.selected === null ? [] : edgesOf(state.selected))]);
    const drawn = (i) => element(i).nonempty();
    const missing = [...wanted].filter((e) => cy.getElementById(`e${e}`).empty());
    const possible = missing.filter((e) => drawn(edges[e].source) && drawn(edges[e].target));
    cy.add(possible.map((e) => elements.edge(e, {}, "second")));
  }

  function drawGraph() {
    const { shown } = model;
    cy.add([...shown].filter((i) => element(i).empty()).map(elements.node));
    const near = new Set([...shown].flatMap(edgesOf));
    const fits = (e) => shown.has(edges[e].source) && shown.has(edges[e].target) && cy.getElementById(`e${e}`).empty();
    cy.add([...near].sort((a, b) => a - b).filter(fits).map((e) => elements.edge(e)));
    shown.forEach((i) => element(i).toggleClass("partial", model.hidden(i).length > 0));
  }

  // Same data, same picture: the layout draws its random numbers from a fixed sequence.
  function arrange(options) {
    const random = Math.random;
    let state = 1;
    Math.random = () => (state = (state * 48271) % 2147483647) / 2147483647;
    try {
      const count = cy.nodes().length;
      const force = {
        name: "fcose",
        // Its spectral draft alone draws chains of nodes as lines: the forces always follow, in fewer steps for many.
        quality: "default",
        numIter: Math.round(Math.min(2500, 600000 / Math.max(1, count))),
        nodeDimensionsIncludeLabels: false,
        nodeSeparation: 90,
        idealEdgeLength: 85,
        nodeRepulsion: 9000,
        gravity: 0.2,
        packComponents: false,
        tile: true,
        tilingPaddingVertical: 46,
        tilingPaddingHorizontal: 46,
      };
      cy.layout({ ...force, animate: false, fit: false, ...options }).run();
    } finally {
      Math.random = random;
    }
  }

  function paint() {
    cy.batch(() => {
      cy.nodes().forEach((node) => {
        node.toggleClass("selected", keyOf(node) === state.selected);
        node.toggleClass("faded", state.focus !== null && !state.focus.has(keyOf(node)));
      });
      cy.edges().forEach((edge) => {
        edge.toggleClass(
          "faded",
          state.focus !== null && !(state.focus.has(keyOf(edge.source())) && state.focus.has(keyOf(edge.target()))),
        );
      });
    });
    rename();
  }

  function redraw() {
    if (isTree) drawTree();
    else drawGraph();
    paint();
    const all = nodes.length;
    const seen = cy.nodes().filter((node) => !node.hasClass("more")).length;
    on.status(
      seen < all
        ? `${seen.toLocaleString("en")} of ${all.toLocaleString("en")} nodes shown`
        : `${all.toLocaleString("en")} ${all === 1 ? "node" : "nodes"}`,
    );
  }

  function move(target) {
    if (calm) cy.viewport(target);
    else cy.animate({ ...target, duration: 260, easing: "ease-out" });
  }

  // Everything in `some` in sight, but never smaller than can be read.
  function fit(some, smallest = 0.02, gently = true) {
    if (some.empty()) return;
    const box = some.boundingBox({ includeLabels: false, includeUnderlays: false });
    const pad = 34;
    const side = isTree ? pad : Math.min(90, cy.width() / 5); // names are wider than their discs
    const zoom = Math.min(
      (cy.width() - 2 * side) / (box.w || 1),
      (cy.height() - 2 * pad) / (box.h || 1),
      isTree ? 1.15 : 1.4,
    );
    const used = Math.max(zoom, smallest);
    const x = used > zoom && box.w * used > cy.width() && focusPoint(some) ? focusPoint(some) : box.x1 + box.w / 2;
    const y = box.h * used > cy.height() ? box.y1 + (cy.height() / 2 - pad) / used : box.y1 + box.h / 2;
    const target = { zoom: used, pan: { x: cy.width() / 2 - x * used, y: cy.height() / 2 - y * used } };
    if (gently) move(target);
    else cy.viewport(target);
  }

  const focusPoint = (some) => {
    const lit = some.filter(".lit");
    return lit.nonempty() ? lit.boundingBox().x1 + lit.boundingBox().w / 2 : null;
  };

  function bringIntoSight(key) {
    const node = element(key);
    if (node.empty()) return;
    const zoom = Math.min(Math.max(cy.zoom(), isTree ? 0.8 : 0.7), 1.4);
    const { x, y } = node.position();
    move({ zoom, pan: { x: cy.width() / 2 - x * zoom, y: cy.height() / 2 - y * zoom } });
  }

  // The same card stays under the pointer while the tree rearranges itself around it; then no side is left empty
  // that there are cards for.
  function keepInPlace(key, change) {
    const before = { ...element(key).renderedPosition() };
    change();
    redraw();
    const after = element(key).renderedPosition();
    cy.panBy({ x: before.x - after.x, y: before.y - after.y });
    const pad = 34;
    const box = cy.elements().renderedBoundingBox({ includeLabels: false });
    const shift = (low, high, room) => {
      if (high - low <= room - 2 * pad) return Math.max(pad - low, 0) || Math.min(room - pad - high, 0);
      return Math.min(pad - low, 0) || Math.max(room - pad - high, 0);
    };
    const { x, y } = cy.pan();
    move({
      zoom: cy.zoom(),
      pan: { x: x + shift(box.x1, box.x2, cy.width()), y: y + shift(box.y1, box.y2, cy.height()) },
    });
  }

  function expand(i) {
    const anchor = { ...element(i).position() };
    const fresh = model.hidden(i).slice(0, 40);
    model.show(fresh);
    redraw();
    fresh.forEach((j, n) => {
      const angle = 2.399963 * n;
      element(j).position({
        x: anchor.x + (60 + 9 * Math.sqrt(n)) * Math.cos(angle),
        y: anchor.y + (60 + 9 * Math.sqrt(n)) * Math.sin(angle),
      });
    });
    if (cy.nodes().length < 700) arrange({ randomize: false, quality: "proof", numIter: 300 });
    rename();
  }

  function isInSight(some) {
    const box = some.renderedBoundingBox({ includeLabels: false });
    return box.x1 >= 0 && box.y1 >= 0 && box.x2 <= cy.width() && box.y2 <= cy.height();
  }

  cy.on("tap", (event) => {
    if (event.target === cy) return on.select(null);
    if (!event.target.isNode()) return undefined;
    const key = keyOf(event.target);
    if (!isTree) return on.select(key);
    if (model.isMore(key)) {
      const parent = event.target.incomers("node");
      const anchor = parent.nonempty() ? keyOf(parent[0]) : null;
      if (anchor !== null) return keepInPlace(anchor, () => model.more(key));
      model.more(key);
      return redraw();
    }
    if (model.childCount(key) && (!model.isOpen(key) || state.selected === key)) {
      keepInPlace(key, () => model.toggle(key));
      if (model.isOpen(key)) {
        const family = element(key).union(element(key).outgoers("node"));
        cy.stop(false, true);
        if (!isInSight(family)) fit(family, 0.6);
      }
    }
    return on.select(key);
  });
  cy.on("mouseover", "node", (event) => {
    const key = keyOf(event.target);
    if (!isTree || !model.isMore(key)) on.hover(key, event.originalEvent);
  });
  cy.on("mouseout", "node", () => on.hover(null));
  cy.on("mouseover", "edge", (event) => on.hoverText(event.target.data("label"), event.originalEvent));
  cy.on("mouseout", "edge", () => on.hoverText("", null));
  cy.on("viewport resize", rename);
  cy.on("pan zoom", () => on.hover(null));
  // Until the reader moves the picture, it fits the window, whatever becomes of that.
  let moved = false;
  ["wheel", "mousedown", "touchstart"].forEach((name) =>
    stage.addEventListener(name, () => (moved = true), { passive: true }),
  );

  if (isTree) model.openReadable(cy.width() - 68, cy.height() - 68, 0.68);
  redraw();
  if (!isTree) arrange({});
  if (!nodes.length) on.status("There is nothing to show.");
  // What is to be in sight: a graph that shows the answer alone moves to it.
  const wanted = () => (state.litOnly && !isTree && cy.nodes(".lit").nonempty() ? cy.nodes(".lit") : cy.elements());
  cy.ready(() => fit(wanted(), isTree ? 0.6 : 0.02, false));

  return {
    select(i) {
      state.selected = i;
      if (i !== null && element(i).empty()) {
        if (isTree) model.reveal(i);
        else model.show([i]);
        const near = isTree ? undefined : [...model.neighbours(i)].find((j) => element(j).nonempty());
        const at = near === undefined ? { x: 0, y: 0 } : { ...element(near).position() };
        redraw();
        if (!isTree) element(i).position({ x: at.x + 70, y: at.y + 40 });
      } else if (isTree) drawFurtherParents();
      paint();
    },
    reveal: (i) => {
      if (!isInSight(element(i)) || cy.zoom() < 0.5) bringIntoSight(i);
    },
    family(i) {
      const near = new Set([i, ...edgesOf(i).flatMap((e) => [edges[e].source, edges[e].target])]);
      if (isTree) model.ancestors(i).forEach((j) => near.add(j));
      return near;
    },
    edgesOf: (i) => edgesOf(i).map((e) => edges[e]),
    // The lit path alone: the tree closes all else, the graph moves to it; and back.
    setLit(on) {
      state.litOnly = on;
      if (isTree) {
        back?.();
        back = on ? model.openLit() : null;
        redraw();
      }
      fit(wanted(), isTree ? 0.6 : 0.02);
    },
    setFocus(keys) {
      state.focus = keys;
      paint();
    },
    fit: () => fit(cy.elements()),
    zoom: (factor) =>
      move({ zoom: { level: cy.zoom() * factor, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } } }),
    retheme() {
      cy.style(ragkit.style(kind));
      if (!isTree) cy.nodes().forEach((node) => node.data(elements.dataOf(keyOf(node))));
      redraw();
    },
    resize() {
      cy.resize();
      if (!moved && state.selected === null) fit(wanted(), isTree ? 0.6 : 0.02, false);
    },
    actions: (i) => {
      if (i === null) return [];
      if (isTree && model.childCount(i)) {
        const word = model.isOpen(i) ? "Close" : "Open";
        return [[`${word} its ${model.childCount(i)} children`, () => keepInPlace(i, () => model.toggle(i))]];
      }
      const hidden = isTree ? 0 : model.hidden(i).length;
      return hidden ? [[`Show ${Math.min(hidden, 40)} of ${hidden} hidden neighbours`, () => expand(i)]] : [];
    },
    buttons: isTree
      ? [
          ["Open all", "Open every branch", () => (model.openAll(), redraw(), fit(cy.elements(), 0.8))],
          ["Close all", "Close every branch", () => (model.closeAll(), redraw(), fit(cy.elements(), 0.68))],
        ]
      : model.shown.size < nodes.length
        ? [
            [
              "Show all",
              "Show every node",
              (made) => (made.remove(), model.showAll(), redraw(), arrange({}), fit(cy.elements())),
            ],
          ]
        : [],
  };
};
