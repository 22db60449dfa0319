// SPDX-License-Identifier: MIT
"use strict";
/* A flame graph on a canvas. Works in HTML and in an SVG's foreignObject, so elements are made with their namespace. */
const dynprobeFlame = (() => {
const XHTML = "http://www.w3.org/1999/xhtml";
const ROW = 18, SIDE = 6, COLORS = 8, LEAST = 0.5;

/* Shows control characters as escapes: terminal commands, and marks that reverse or hide other text. */
const hidden = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
const clean = (text) => text.replace(hidden, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
function make(tag, cls, ...inside) {
	const node = document.createElementNS(XHTML, tag);
	if (cls) node.setAttribute("class", cls);
	for (const x of inside) if (x) node.append(typeof x === "string" ? clean(x) : x);
	return node;
}

/* A line of a page's data: base64 of deflated text. */
async function bytesOf(line) {
	const binary = atob(line), bytes = new Uint8Array(binary.length);
	for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
	return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate")));
}
const textOf = async (line) => (await bytesOf(line)).text();

/* The same function has the same colour, whatever stands behind its name. flame_svg.c has the same sum. */
function colorOf(name) {
	let h = 2166136261;
	for (const byte of new TextEncoder().encode(name.split(/[ +(]/, 1)[0])) h = Math.imul(h ^ byte, 16777619);
	return (h >>> 16) % COLORS;
}

const units = [[1e9, "s"], [1e6, "ms"], [1e3, "\u00b5s"], [1, "ns"]];
function amount(value, unit) {
	if (unit !== "ns") return value.toLocaleString("en-US") + " " + (value === 1 && unit.endsWith("s") ? unit.slice(0, -1) : unit);
	const [by, word] = units.find((u) => Math.abs(value) >= u[0]) || units[3];
	return (value / by).toLocaleString("en-US", { maximumFractionDigits: value / by < 100 ? 2 : 0 }) + " " + word;
}

/* From { names, nodes: [name, depth, total, ...] }, in the order of the tree, to arrays; node 0 is the root. */
function treeOf(data) {
	const n = data.nodes.length / 3 + 1, t = { n, name: new Int32Array(n), depth: new Uint16Array(n), total: new Float64Array(n), start: new Float64Array(n), end: new Uint32Array(n), parent: new Int32Array(n), names: data.names, unit: data.unit };
	const open = [0], used = [0];
	t.name[0] = t.parent[0] = -1;
	t.total[0] = data.total;
	for (let i = 1; i < n; i++) {
		const depth = data.nodes[3 * i - 2] + 1;
		for (; open.length > depth; used.pop()) t.end[open.pop()] = i;
		const up = open[depth - 1];
		t.name[i] = data.nodes[3 * i - 3];
		t.depth[i] = depth;
		t.total[i] = data.nodes[3 * i - 1];
		t.parent[i] = up;
		t.start[i] = t.start[up] + used[depth - 1];
		used[depth - 1] += t.total[i];
		open.push(i);
		used.push(0);
	}
	for (const i of open) t.end[i] = n;
	t.color = t.names.map(colorOf);
	return t;
}

class Flame {
	constructor(host, data, options) {
		this.options = options || {};
		this.host = host;
		this.hanging = !!this.options.hanging;
		this.build();
		this.set(data);
		this.watch();
	}
	build() {
		const button = (text, title, press) => { const b = make("button", "", text); b.type = "button"; b.title = title; b.onclick = press; return b; };
		this.title = make("h1");
		this.input = make("input");
		Object.assign(this.input, { type: "search", placeholder: "Search functions   /", autocomplete: "off", spellcheck: false });
		this.input.setAttribute("aria-label", "Search functions");
		this.back = button("Whole graph", "Zoom out (Esc)", () => this.zoom(0));
		this.bar = make("div", "flame-bar", this.title, this.input, this.back, button("Flip", "Callers above or below (i)", () => this.flip()));
		if (!this.options.part) this.bar.append(button("Light/dark", "Other colours (t)", () => this.theme()));
		const help = button("?", "Keys", () => this.help());
		help.setAttribute("aria-label", "Keys");
		this.bar.append(help);
		this.said = make("div", "flame-said");
		this.said.setAttribute("aria-live", "polite");
		this.canvas = make("canvas");
		this.canvas.tabIndex = 0;
		this.canvas.setAttribute("role", "application");
		this.canvas.setAttribute("aria-label", "Flame graph: arrow keys walk the frames, Enter zooms");
		this.view = make("div", "flame-view", this.canvas);
		this.foot = make("div", "flame-foot");
		const keys = [["\u2191 \u2193 \u2190 \u2192", "walk the frames"], ["Enter", "zoom to the frame"], ["Esc", "zoom out, forget the search"], ["/", "search (a regular expression)"], ["n N", "next, previous match"], ["i", "flip: callers above or below"], ["t", "light or dark"], ["?", "these keys"]].filter((k) => !this.options.part || k[0] !== "t");
		const list = make("dl");
		for (const [k, what] of keys) list.append(make("dt", "", k), make("dd", "", what));
		this.keys = make("div", "flame-keys", make("h2", "", "Keys"), list);
		this.keys.hidden = true;
		this.keys.onclick = () => { this.keys.hidden = true; };
		this.root = make("div", "flame", this.bar, this.said, this.view, this.foot, this.keys);
		this.host.replaceChildren(this.root);
	}
	/* Other data, in the same place. */
	set(data) {
		this.tree = data.n ? data : treeOf(data);
		this.unit = data.unit;
		this.picked = this.zoomed = 0;
		this.matched = null;
		this.title.textContent = clean(data.title || "");
		const left = [data.narrow ? data.narrow.toLocaleString("en-US") + " frames narrower than a tenth of a pixel are left out" : "", data.skipped ? data.skipped.toLocaleString("en-US") + " lines of the input were no stacks" : "", data.note || ""];
		this.foot.textContent = left.filter(Boolean).join(" \u00b7 ");
		this.foot.hidden = !this.foot.textContent;
		this.search(this.input.value);
		this.zoom(0);
	}
	nameOf(i) { return i ? this.tree.names[this.tree.name[i]] : "all"; }
	/* What a frame's own code took: its total without its children's. */
	selfOf(i) {
		const t = this.tree;
		let rest = t.total[i];
		for (let c = i + 1; c < t.end[i]; c = t.end[c]) rest -= t.total[c];
		return Math.max(0, rest);
	}
	say(i) {
		const t = this.tree, percent = (of) => (of ? (100 * t.total[i] / of).toFixed(t.total[i] / of < 0.1 ? 2 : 1) : "0") + "%";
		const parts = [amount(t.total[i], this.unit), percent(t.total[0]) + " of all", this.zoomed ? percent(t.total[this.zoomed]) + " of " + this.nameOf(this.zoomed) : "", "self " + amount(this.selfOf(i), this.unit)].filter(Boolean);
		if (this.matched) parts.push(`matched ${(100 * this.matchedTotal / (t.total[0] || 1)).toFixed(1)}%`);
		this.said.replaceChildren(make("div", "", this.nameOf(i)), make("div", "dim", parts.join(" \u00b7 ")));
		this.root.dataset.said = this.said.textContent;
	}

	/* ---- drawing ---- */
	/* The frames from the zoomed one's callers up, those of a pixel's part only once; calls draw(i, x, width, row). */
	eachShown(draw) {
		const t = this.tree, z = this.zoomed, scale = (this.width - 2 * SIDE) / (t.total[z] || 1);
		for (let i = z; i >= 0; i = t.parent[i]) if (i !== z) draw(i, SIDE, this.width - 2 * SIDE, t.depth[i]);
		for (let i = z; i < t.end[z];) {
			const width = t.total[i] * scale;
			if (width < LEAST) { i = t.end[i]; continue; }
			draw(i, SIDE + (t.start[i] - t.start[z]) * scale, width, t.depth[i]);
			i++;
		}
	}
	layout() {
		const ratio = window.devicePixelRatio || 1;
		let deepest = 0;
		this.width = Math.max(200, this.view.clientWidth);
		this.eachShown((i, x, w, row) => { deepest = Math.max(deepest, row); });
		this.rows = deepest + 1;
		this.height = this.rows * ROW + SIDE;
		Object.assign(this.canvas, { width: this.width * ratio, height: this.height * ratio });
		this.canvas.style.width = this.width + "px";
		this.canvas.style.height = this.height + "px";
		this.ratio = ratio;
	}
	top(row) { return this.hanging ? row * ROW : this.height - SIDE - (row + 1) * ROW; }
	draw() {
		const g = this.canvas.getContext("2d"), style = getComputedStyle(this.root), t = this.tree;
		const color = (name) => style.getPropertyValue("--" + name).trim(), fill = Array.from({ length: COLORS + 1 }, (_, i) => color("f" + i));
		const ink = color("ink"), match = color("match"), matchInk = color("match-ink");
		g.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
		g.clearRect(0, 0, this.width, this.height);
		g.font = "11.5px " + (color("mono") || "monospace");
		const letter = g.measureText("0").width;
		let shown = 0;
		this.eachShown((i, x, w, row) => {
			const y = this.top(row), hit = this.matched && i && this.matched[t.name[i]];
			shown++;
			g.globalAlpha = i < this.zoomed && this.zoomed && t.end[i] > this.zoomed ? 0.6 : 1;
			g.fillStyle = hit ? match : fill[i ? t.color[t.name[i]] : COLORS];
			g.fillRect(x, y, w > 2 ? w - 0.6 : w, ROW - 1);
			const letters = Math.floor((w - 6) / letter);
			if (letters < 3) return;
			const name = clean(this.nameOf(i));
			g.globalAlpha = 1;
			g.fillStyle = hit ? matchInk : ink;
			g.fillText(name.length > letters ? name.slice(0, letters - 1) + "\u2026" : name, x + 3, y + ROW - 5);
		});
		g.globalAlpha = 1;
		this.root.dataset.shown = shown;
		this.mark(g, color("focus"));
	}
	mark(g, color) {
		this.eachShown((i, x, w, row) => {
			if (i !== this.picked) return;
			g.strokeStyle = color;
			g.lineWidth = 2;
			g.strokeRect(x + 1, this.top(row) + 1, Math.max(1, w - 2), ROW - 3);
		});
	}
	later() {
		if (this.waiting) return;
		this.waiting = true;
		requestAnimationFrame(() => { this.waiting = false; this.draw(); });
	}

	/* ---- moving ---- */
	at(e) {
		const r = this.canvas.getBoundingClientRect(), x = e.clientX - r.left, y = e.clientY - r.top;
		let found = -1;
		this.eachShown((i, left, w, row) => { if (x >= left && x < left + w && y >= this.top(row) && y < this.top(row) + ROW) found = i; });
		return found;
	}
	zoom(i) {
		this.zoomed = this.picked = i;
		this.back.disabled = !i;
		this.layout();
		this.draw();
		this.view.scrollTop = this.hanging ? 0 : this.view.scrollHeight;
		this.say(i);
		this.root.dataset.zoomed = this.nameOf(i);
	}
	pick(i) {
		if (i < 0) return;
		this.picked = i;
		if (i < this.zoomed || i >= this.tree.end[this.zoomed]) this.zoom(i);
		this.say(i);
		const y = this.top(this.tree.depth[i]) + this.canvas.offsetTop - this.view.offsetTop;
		if (y < this.view.scrollTop || y + ROW > this.view.scrollTop + this.view.clientHeight) this.view.scrollTop = y - this.view.clientHeight / 2;
		this.later();
	}
	/* The widest child; the frame beside, of any parent. */
	deeper() {
		const t = this.tree;
		let best = -1;
		for (let c = this.picked + 1; c < t.end[this.picked]; c = t.end[c]) if (best < 0 || t.total[c] > t.total[best]) best = c;
		this.pick(best);
	}
	beside(step) {
		const t = this.tree, row = [];
		this.eachShown((i, x, w, depth) => { if (depth === t.depth[this.picked]) row.push(i); });
		this.pick(row[row.indexOf(this.picked) + step] ?? -1);
	}
	flip() { this.hanging = !this.hanging; this.view.classList.toggle("hanging", this.hanging); this.zoom(this.zoomed); }
	theme() {
		const root = document.documentElement, dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
		root.setAttribute("data-theme", dark ? "light" : "dark");
		this.draw();
	}
	help() { this.keys.hidden = !this.keys.hidden; }

	/* ---- search ---- */
	search(text) {
		const t = this.tree;
		let wanted = null;
		if (text) { try { wanted = new RegExp(text, "i"); } catch { wanted = { test: (name) => name.toLowerCase().includes(text.toLowerCase()) }; } }
		this.matched = wanted && t.names.map((name) => wanted.test(name));
		this.matchedTotal = 0;
		for (let i = 1; this.matched && i < t.n;) {
			if (this.matched[t.name[i]]) { this.matchedTotal += t.total[i]; i = t.end[i]; } else i++;
		}
		this.root.dataset.matched = this.matched ? (100 * this.matchedTotal / (t.total[0] || 1)).toFixed(1) : "";
	}
	next(step) {
		const t = this.tree;
		for (let k = 1; this.matched && k <= t.n; k++) {
			const i = (this.picked + step * k + t.n * 2) % t.n;
			if (i && this.matched[t.name[i]]) { this.pick(i); return; }
		}
	}

	/* ---- the reader ---- */
	key(e) {
		if (e.ctrlKey || e.metaKey || e.altKey) return;
		if (e.target === this.input) {
			if (e.key === "Escape") { this.input.value = ""; this.searchNow(); this.canvas.focus(); }
			if (e.key === "Enter") { this.searchNow(); this.canvas.focus(); this.next(1); }
			if (e.key === "Escape" || e.key === "Enter") e.stopPropagation();
			return;
		}
		const up = this.hanging ? () => this.pick(this.tree.parent[this.picked]) : () => this.deeper(), down = this.hanging ? () => this.deeper() : () => this.pick(this.tree.parent[this.picked]);
		const does = { ArrowUp: up, ArrowDown: down, ArrowLeft: () => this.beside(-1), ArrowRight: () => this.beside(1), "/": () => this.input.focus(), n: () => this.next(1), N: () => this.next(-1), i: () => this.flip(),
			Escape: () => { if (!this.keys.hidden) this.help(); else { this.input.value = ""; this.searchNow(); this.zoom(0); } }, "?": () => this.help() };
		if (e.target.tagName !== "BUTTON" && e.target.tagName !== "button") does.Enter = () => this.zoom(this.picked);
		if (!this.options.part) does.t = () => this.theme();
		if (!does[e.key]) return;
		e.preventDefault();
		e.stopPropagation();
		does[e.key]();
	}
	searchNow() { this.search(this.input.value); this.draw(); this.say(this.picked); }
	watch() {
		this.canvas.addEventListener("mousemove", (e) => { const i = this.at(e); if (i >= 0) this.say(i); });
		this.canvas.addEventListener("mouseleave", () => this.say(this.picked));
		this.canvas.addEventListener("click", (e) => { const i = this.at(e); this.canvas.focus({ preventScroll: true }); if (i >= 0) this.zoom(i); });
		this.input.addEventListener("input", () => { clearTimeout(this.typing); this.typing = setTimeout(() => this.searchNow(), 60); });
		(this.options.part ? this.root : document).addEventListener("keydown", (e) => this.key(e));
		new ResizeObserver(() => { if (this.view.clientWidth && Math.max(200, this.view.clientWidth) !== this.width) { this.layout(); this.draw(); } }).observe(this.view);
		matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
	}
}
return { Flame, textOf, bytesOf, make, clean, amount, treeOf };
})();
