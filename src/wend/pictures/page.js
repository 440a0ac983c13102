// Folds the boxes of loops and branches, and highlights the nodes of a source line.
"use strict";
const HEADER = 22, PAD = 12, GAP = 26, PORTS = 15, DETAIL = 13, FOLDED = 8;
const children = (g, selector) => [...g.children].filter((child) => child.matches(selector));
const number = (x) => String(+x.toFixed(1));

function moveTo(g, x, y) {
  g.setAttribute("transform", `translate(${number(x)},${number(y)})`);
}

// Lays out a drawing; returns its height.
function layOut(drawing, top) {
  const boxes = children(drawing, "[data-row]");
  const sizes = boxes.map(heightOf);
  const labelled = boxes.map((box) => children(box, ".outs").length ? PORTS : 0);
  const rows = [];
  boxes.forEach((box, k) => {
    const row = +box.dataset.row, below = box.matches(".param") ? PORTS : labelled[k];
    rows[row] = Math.max(rows[row] || 0, sizes[k] + below);
  });
  const tops = [];
  let y = top + PAD;
  for (let row = 0; row < rows.length; row++) {
    rows[row] = rows[row] || 0;
    tops.push(y);
    y += rows[row] + GAP;
  }
  boxes.forEach((box, k) => moveTo(box, +box.dataset.x, tops[+box.dataset.row]));
  for (const wire of children(drawing, "path")) {
    wire.setAttribute("d", wire.dataset.parts.split(" ").map((part) => {
      const [x, to, row, box] = part.split(",").map(Number);
      const start = tops[row] + (box >= 0 ? sizes[box] + labelled[box] : 0);
      const middle = tops[row] + rows[row], end = tops[row + 1];
      const bend = number((middle + end) / 2);
      const [a, b] = [number(x), number(to)];
      return `M${a},${number(start)}V${number(middle)}C${a},${bend} ${b},${bend} ${b},${number(end)}`;
    }).join(""));
  }
  y -= rows.length ? GAP : 0;
  for (const notes of children(drawing, ".notes")) {
    moveTo(notes, 0, y);
    y += DETAIL * notes.children.length;
  }
  return y + PAD;
}

function heightOf(box) {
  if (!box.dataset.head) return +box.dataset.height;
  const head = +box.dataset.head;
  let height = head + FOLDED;
  if (!box.classList.contains("folded")) {
    const stacked = box.dataset.stacked === "1";
    let y = head, tallest = 0;
    for (const region of children(box, ".region")) {
      const regionHeight = layOut(region, HEADER);
      children(region, "rect")[0].setAttribute("height", number(regionHeight));
      const x = +/\(([^,]+)/.exec(region.getAttribute("transform"))[1];
      moveTo(region, x, stacked ? y : head);
      y += regionHeight + PAD;
      tallest = Math.max(tallest, regionHeight);
    }
    height = stacked ? y : head + tallest + PAD;
  }
  children(box, "rect")[0].setAttribute("height", number(height));
  for (const outs of children(box, ".outs")) moveTo(outs, 0, height);
  return height;
}

function draw(svg) {
  const height = Math.round(layOut(svg, 0)), width = svg.getAttribute("width");
  svg.setAttribute("height", height);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
}

function fold(box, folded) {
  box.classList.toggle("folded", folded);
  const title = children(box, ".t")[0];
  title.setAttribute("aria-expanded", String(!folded));
  title.textContent = (folded ? "▸ " : "▾ ") + title.textContent.slice(2);
}

for (const svg of document.querySelectorAll("svg.wend-graph")) {
  const boxes = [...svg.querySelectorAll("[data-head]")];
  for (const box of boxes) {
    const title = children(box, ".t")[0];
    title.textContent = "▾ " + title.textContent;
    title.classList.add("fold");
    title.setAttribute("role", "button");
    title.setAttribute("tabindex", "0");
    title.setAttribute("aria-expanded", "true");
    const toggle = () => { fold(box, !box.classList.contains("folded")); draw(svg); };
    title.addEventListener("click", toggle);
    title.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      toggle();
    });
  }
  if (!boxes.length) continue;
  const bar = document.createElement("div");
  for (const [text, folded] of [["fold all", true], ["unfold all", false]]) {
    const button = document.createElement("button");
    button.textContent = text;
    button.addEventListener("click", () => { boxes.forEach((box) => fold(box, folded)); draw(svg); });
    bar.append(button);
  }
  const fit = document.createElement("button");
  fit.textContent = "fit width";
  fit.addEventListener("click", () => svg.parentElement.classList.toggle("fit"));
  bar.append(fit);
  svg.parentElement.before(bar);
}

const elementsOfLine = new Map();
for (const element of document.querySelectorAll("[data-line]")) {
  const line = element.dataset.line;
  if (!elementsOfLine.has(line)) elementsOfLine.set(line, []);
  elementsOfLine.get(line).push(element);
}
function show(line) {
  for (const element of document.querySelectorAll(".hit")) element.classList.remove("hit");
  for (const element of elementsOfLine.get(line) || []) element.classList.add("hit");
}
document.addEventListener("mouseover", (event) => {
  const element = event.target.closest("[data-line]");
  show(element && element.dataset.line);
});
document.addEventListener("click", (event) => {
  const element = event.target.closest("g[data-line]");
  const line = element && (elementsOfLine.get(element.dataset.line) || []).find((other) => other.matches(".line"));
  if (line) line.scrollIntoView({ block: "nearest" });
});
