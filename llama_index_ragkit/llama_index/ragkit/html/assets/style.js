"use strict";
// How nodes and edges look, in the colours of the present theme.
ragkit.style = (kind) => {
  const { theme, text } = ragkit;
  const [ink, surface, line, accent, muted] = ["ink", "surface", "line", "accent", "muted"].map(theme);
  const label = {
    "font-family": text.FAMILY,
    "font-size": 12,
    "text-wrap": "wrap",
    "text-max-width": 10000,
    "min-zoomed-font-size": 7,
    color: ink,
  };
  const card = {
    shape: "round-rectangle",
    "corner-radius": 7,
    width: "data(width)",
    height: "data(height)",
    "background-color": "data(fill)",
    "border-width": 1.5,
    "border-color": "data(colour)",
    label: "data(card)",
    "text-halign": "center",
    "text-valign": "center",
    "line-height": 1.28,
  };
  const disc = {
    width: "data(diameter)",
    height: "data(diameter)",
    "background-color": "data(colour)",
    "border-width": 1.5,
    "border-color": surface,
  };
  return [
    { selector: "node", style: { ...label, ...(kind === "tree" ? card : disc) } },
    { selector: "node.inner", style: { "font-weight": 600, "background-color": "data(strong)" } },
    { selector: "node.closed", style: { "border-width": 4, "border-style": "double" } },
    {
      selector: "node.more",
      style: {
        "background-color": surface,
        "border-color": muted,
        "border-style": "dashed",
        "border-width": 1,
        color: muted,
      },
    },
    { selector: "node.partial", style: { "border-color": muted, "border-style": "double", "border-width": 4 } },
    {
      selector: "edge",
      style: {
        width: "data(width)",
        "line-color": line,
        "target-arrow-color": line,
        "curve-style": kind === "tree" ? "straight" : "bezier",
        "target-arrow-shape": "none",
        "arrow-scale": 0.8,
        opacity: kind === "tree" ? 1 : 0.75,
      },
    },
    { selector: "edge.directed", style: { "target-arrow-shape": "triangle" } },
    {
      selector: "edge.routed",
      style: {
        "curve-style": "round-segments",
        "segment-distances": "data(distances)",
        "segment-weights": "data(weights)",
        "segment-radii": 6,
        "edge-distances": "node-position",
      },
    },
    {
      selector: "edge.second",
      style: { "curve-style": "bezier", "line-style": "dashed", "line-color": muted, width: 1.5 },
    },
    {
      selector: "node.lit",
      style: { "border-color": accent, "border-width": 3, "border-style": "solid", "z-index": 5 },
    },
    {
      selector: "node.lit",
      style: {
        "underlay-color": accent,
        "underlay-opacity": 0.22,
        "underlay-padding": 6,
        "underlay-shape": kind === "tree" ? "round-rectangle" : "ellipse",
      },
    },
    {
      selector: "edge.lit",
      style: { "line-color": accent, "target-arrow-color": accent, width: 3, opacity: 1, "z-index": 4 },
    },
    { selector: ".faded", style: { opacity: kind === "tree" ? 0.4 : 0.16 } },
    { selector: "edge.faded", style: { opacity: 0.1 } },
    {
      selector: "node.named",
      style: {
        label: "data(short)",
        "min-zoomed-font-size": 0,
        "line-height": 1.25,
        "text-outline-color": surface,
        "z-index": 6,
      },
    },
    {
      selector: "edge.named",
      style: {
        label: "data(label)",
        "font-family": text.FAMILY,
        "min-zoomed-font-size": 0,
        color: ink,
        "text-background-color": surface,
        "text-background-opacity": 0.9,
        "text-background-padding": 2,
        "text-wrap": "wrap",
        "text-max-width": 10000,
      },
    },
    {
      selector: "node.selected",
      style: { "border-color": ink, "border-width": 4, "border-style": "solid", "z-index": 7 },
    },
    { selector: "core", style: { "active-bg-opacity": 0, "selection-box-opacity": 0 } },
    { selector: "node:active, edge:active", style: { "overlay-opacity": 0 } },
  ];
};
