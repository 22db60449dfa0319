// SPDX-License-Identifier: MIT
"use strict";
(async () => {
const el = (id) => document.getElementById(id);
const state = { group: 0, thread: null, frame: 0, tab: "frame", found: [], at: -1, query: "", searched: 0, run: 0 };

/* ---- data: one part per line (output/snapshot/report.c). Each part is unpacked alone, and only when it is shown or searched. ---- */
const lines = el("data").textContent.trim().split("\n");
el("data").remove();
async function unpack(line) {
	const bytes = Uint8Array.from(atob(line), (c) => c.charCodeAt(0));
	return JSON.parse(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text());
}
if (typeof DecompressionStream === "undefined") {
	el("title").textContent = "This page needs a browser from 2023 or later (DecompressionStream).";
	return;
}
const [data, types] = await Promise.all([unpack(lines[0]), unpack(lines[lines.length - 1])]);
data.threads.forEach((t, i) => { t.at = i; });
const kept = new Map();
/* The values of a thread: { variables, frames: [[...], ...] }. Caches those of the last few threads. */
async function valuesOf(t) {
	if (kept.has(t)) return kept.get(t);
	const values = await unpack(lines[2 + t.at]);
	kept.set(t, values);
	if (kept.size > 8) kept.delete(kept.keys().next().value);
	return values;
}
let globals = [];
const pause = () => new Promise((done) => setTimeout(done));

/* Shows control characters as escapes: terminal commands, and marks that reverse or hide other text. */
const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
const clean = (text) => text.replace(hidden, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));

/* Data of the program becomes text, never markup. */
function make(tag, cls, ...inside) {
	const node = document.createElement(tag);
	if (cls) node.className = cls;
	for (const x of inside) if (x !== null && x !== undefined && x !== "") node.append(typeof x === "string" ? clean(x) : x);
	return node;
}
function clear(node) { node.replaceChildren(); return node; }
const base = (path) => (path || "").replace(/^.*\//, "");
const ms = (ns) => ns === undefined ? "" : (ns / 1e6).toFixed(2) + " ms";
const framesOf = (t) => t.frames || [];
const symbol = (f) => f.symbol || f.pc;
const cut = (text, most) => text.length > most ? text.slice(0, most - 1) + "\u2026" : text;
const stateName = { R: "running", S: "sleeping", D: "in uninterruptible sleep", T: "stopped", t: "traced", Z: "zombie", X: "dead", I: "idle", P: "parked" };
const kindOf = (v) => v.kind || (types[v.type] || {}).kind;
const sizeOf = (v) => v.size !== undefined ? v.size : (types[v.type] || {}).size;
const called = (path) => ((data.objects || []).find((o) => o.name && o.path === path) || { name: base(path) }).name; // as the program was started
const where = (f) => f.path ? base(f.path) + (f.line ? ":" + f.line : "") : called(f.object);

/* ---- threads: those with the same stack share a row; a faulting thread has its own ---- */
const identity = (f) => f.is_synthesized ? symbol(f) + (f.path || "") + f.line : f.pc + (f.is_inline ? symbol(f) : "");
const groups = [];
{
	const known = new Map();
	for (const t of data.threads) {
		const key = t.is_fault ? "tid " + t.tid : framesOf(t).map(identity).join(" ");
		if (!known.has(key)) { known.set(key, { threads: [], open: false }); groups.push(known.get(key)); }
		known.get(key).threads.push(t);
	}
}

/* A row of a listbox. */
function option(cls, picked, pick, ...inside) {
	const row = make("div", cls, ...inside);
	row.setAttribute("role", "option");
	row.setAttribute("aria-selected", String(picked));
	row.onclick = pick;
	return row;
}
function button(cls, text, press, label) {
	const b = make("button", cls, text);
	b.type = "button";
	if (label) b.setAttribute("aria-label", label);
	b.onclick = (e) => { e.stopPropagation(); press(); };
	return b;
}

const CHIPS = 120;
function chips(g, all) {
	const list = make("div", "chips"), shown = all ? g.threads : g.threads.slice(0, CHIPS);
	if (!all && g.threads.indexOf(state.thread) >= CHIPS) shown.push(state.thread);
	for (const t of shown) list.append(button("chip", String(t.tid), () => pickThread(t), "thread " + t.tid + " " + t.name));
	if (shown.length < g.threads.length) list.append(button("chip", "all " + g.threads.length, () => { list.replaceWith(chips(g, true)); markThread(); }));
	return list;
}

const threadRow = [];
function drawThreads() {
	const pane = clear(el("threads"));
	groups.forEach((g, i) => {
		const t = g.threads[0], many = g.threads.length > 1, first = framesOf(t)[0];
		const same = many && g.threads.every((x) => x.name === t.name);
		const row = option("row" + (t.is_fault ? " fault" : ""), false, () => pickThread(t),
			make("span", "count", many ? "\u00d7" + g.threads.length : t.is_fault ? "\u2716" : ""),
			make("span", "who", many ? (same ? t.name : cut(t.name, 14) + " \u2026") : t.name || "thread"), many ? null : make("span", "dim", " " + t.tid),
			make("div", "top", first ? symbol(first) : "no frames"),
			make("div", "state", [t.is_fault ? "faulting" : "", many ? "the same stack" : stateName[t.state], first && where(first)].filter(Boolean).join(" \u00b7 ")));
		row.id = "thread-" + i;
		row.dataset.group = i;
		pane.append(row);
		threadRow.push(row);
	});
	if (!groups.length) pane.append(make("div", "none", "no threads"));
}
/* Updates only what changes: there may be thousands of rows. */
let chipList = null;
function markThread() {
	const g = groups[state.group], row = threadRow[state.group];
	for (const old of el("threads").querySelectorAll("[aria-selected=true]")) old.setAttribute("aria-selected", "false");
	if (!row) return;
	row.setAttribute("aria-selected", "true");
	el("threads").setAttribute("aria-activedescendant", row.id);
	if (!chipList || chipList.group !== state.group) {
		if (chipList) chipList.node.remove();
		chipList = g.threads.length > 1 ? { group: state.group, node: chips(g) } : null;
		if (chipList) row.after(chipList.node);
	}
	for (const c of el("threads").querySelectorAll(".chip")) c.classList.toggle("hit", c.textContent === String(state.thread.tid));
	row.scrollIntoView({ block: "nearest" });
}

/* The program's innermost frame: those of the C and C++ run-time libraries say little about it. */
const library = /^(libc\.so|libc-2\.|libpthread|ld-linux|ld-musl|libc\.musl|libstdc\+\+|libgcc_s|libm\.so|libdl\.so|librt\.so|\[vdso\]|linux-vdso)/;
function ownFrame(t) {
	const i = framesOf(t).findIndex((f) => f.symbol && !f.is_signal && !library.test(base(f.object)));
	return i < 0 ? Math.max(0, framesOf(t).findIndex((f) => f.is_fault)) : i;
}
const parameters = (list) => (list || []).filter((v) => v.place === "parameter");
function drawFrames() {
	const pane = clear(el("frames")), t = state.thread;
	if (!t) return;
	const head = make("div", "head", make("b", "", t.name || "thread"), make("span", "dim", " " + [String(t.tid), stateName[t.state], t.syscall_text ? "in " + cut(t.syscall_text, 60) : ""].filter(Boolean).join(" \u00b7 ")));
	pane.append(head);
	drawNotes(pane, t.notes);
	for (const k of t.kernel_frames || []) pane.append(make("div", "kernel", "kernel  " + k.symbol));
	framesOf(t).forEach((f, i) => {
		const row = option("row" + (f.is_fault ? " fault" : "") + (f.path ? "" : " bare"), false, () => pickFrame(i),
			make("span", "n", "#" + i), make("span", f.is_guess ? "none" : "who", symbol(f)), make("span", "args dim"),
			make("div", "state", [where(f), f.is_inline ? "inlined" : "", f.is_signal ? "signal frame" : "", f.is_guess ? "guessed" : ""].filter(Boolean).join(" \u00b7 ")));
		row.id = "frame-" + i;
		row.dataset.frame = i;
		if (f.siginfo) row.append(make("div", "note critical", f.siginfo.name + (f.siginfo.reason ? ": " + f.siginfo.reason : "")));
		pane.append(row);
		drawNotes(pane, f.notes);
	});
	if (!framesOf(t).length) pane.append(make("div", "none", "no frames"));
	if (t.more_frames) pane.append(make("div", "none", "at least " + t.more_frames + " more frames"));
	if (t.unwind_end) pane.append(make("div", "none", "end of the stack: " + t.unwind_end));
	drawArguments(t);
}
/* Fills in the arguments when they have been unpacked. */
async function drawArguments(t) {
	const values = await valuesOf(t);
	if (state.thread !== t) return;
	el("frames").querySelectorAll(".row[data-frame]").forEach((row) => {
		const text = "(" + parameters(values.frames[row.dataset.frame]).map((v) => (v.name ? v.name + "=" : "") + short(v)).join(", ") + ")";
		row.querySelector(".args").textContent = clean(cut(text, 160));
	});
}
function markFrame() {
	for (const old of el("frames").querySelectorAll("[aria-selected=true]")) old.setAttribute("aria-selected", "false");
	const row = el("frame-" + state.frame);
	if (!row) return;
	row.setAttribute("aria-selected", "true");
	el("frames").setAttribute("aria-activedescendant", row.id);
	if (state.frame) row.scrollIntoView({ block: "nearest" }); else el("frames").scrollTop = 0;
}

/* ---- values ---- */
function short(v) { const s = v.summary || v.value || ""; return s.length > 40 ? s.slice(0, 37) + "..." : s; }
function drawNotes(pane, notes) {
	for (const n of notes || []) pane.append(make("div", "note " + n.kind, n.kind === "json" ? tidy(n.text) : n.text));
}
function tidy(text) { try { return JSON.stringify(JSON.parse(text).json || JSON.parse(text), null, 1).replace(/[{}",]/g, "").replace(/\n\s*\n/g, "\n"); } catch { return text; } }
function nameOf(v) { return v.name || (v.index !== undefined ? "[" + v.index + "]" : "*"); }
function valueClass(v) {
	if (v.state) return "none";
	return v.is_string || kindOf(v) === "string" ? "str" : "num";
}
const LONGEST = 2000, ELEMENTS = 200;
function drawVariable(v, path) {
	const box = make("div", "var"), children = v.is_hidden ? [] : v.children || [];
	const line = make("span", "line" + (children.length ? " tree" : ""));
	line.tabIndex = -1;
	line.append(make("span", "", nameOf(v)), " ", make("span", "type", v.type), " = ", make("span", valueClass(v), cut(v.summary || v.value, LONGEST)));
	if (v.why && !v.state) line.append(make("span", "none", " (" + v.why + ")"));
	if (v.is_late) line.append(make("span", "none", " (read after the process resumed)"));
	if (v.is_shared) line.append(make("span", "none", " (shared memory)"));
	if (v.is_synthesized) line.append(make("span", "dim", " ◆"));
	line.title = [v.address ? "at " + v.address : "", sizeOf(v) ? sizeOf(v) + " bytes" : "", cut(clean(path), 200)].filter(Boolean).join(" · ");
	line.dataset.path = path;
	box.append(line);
	drawNotes(box, v.notes);
	if (children.length) {
		line.setAttribute("aria-expanded", "false");
		line.onclick = () => toggle(box, line, v, path);
	}
	return box;
}
function childPath(v, path, c) {
	if (kindOf(v) === "reference") return c.name === "*" || !c.name ? "(*" + path + ")" : path + "->" + c.name;
	return c.name ? path + "." + c.name : path + "[" + c.index + "]";
}
/* Children are drawn when their parent is opened: a snapshot may have a hundred thousand values. */
function toggle(box, line, v, path, open) {
	const isOpen = line.getAttribute("aria-expanded") === "true";
	if (open === isOpen) return;
	line.setAttribute("aria-expanded", String(!isOpen));
	if (isOpen) { box.querySelectorAll(":scope > .var").forEach((x) => x.remove()); return; }
	drawSome(box, v, path, 0);
}
function drawSome(box, v, path, from) {
	const to = Math.min(v.children.length, from + ELEMENTS);
	for (const c of v.children.slice(from, to)) box.append(drawVariable(c, childPath(v, path, c)));
	if (to < v.children.length) {
		const more = make("div", "var more"), line = make("span", "line", (v.children.length - to) + " more: show " + Math.min(ELEMENTS, v.children.length - to));
		line.tabIndex = -1;
		line.onclick = () => { more.remove(); drawSome(box, v, path, to); };
		more.append(line);
		box.append(more);
	} else if (v.more) box.append(make("div", "var", make("span", "none", "\u2026 " + v.more + " more, not in the snapshot")));
}
function drawTree(pane, title, list, prefix) {
	if (!list || !list.length) return;
	pane.append(make("h2", "", title));
	for (const v of list) pane.append(drawVariable(v, (prefix || "") + nameOf(v)));
}

/* ---- tabs ---- */
function source(pane, f) {
	const s = (data.sources || []).find((x) => x.path === f.path && f.line >= x.first && f.line < x.first + x.lines.split("\n").length);
	if (!s) return;
		const pre = make("pre", "source");
	s.lines.split("\n").forEach((text, i) => {
		if (Math.abs(s.first + i - f.line) > 4) return;
		pre.append(make("span", s.first + i === f.line ? "at" : "", (s.first + i === f.line ? "\u25b6" : " ") + String(s.first + i).padStart(5) + "  " + text));
	});
	pane.append(pre);
}
const none = (pane, text) => pane.append(make("div", "none", text));
async function drawFrame(pane) {
	const t = state.thread, i = state.frame, f = t && framesOf(t)[i];
	if (!f) { none(pane, t ? "this thread has no frames" : "no thread"); return; }
	pane.append(make("h2", "symbol", make("span", "", symbol(f)), make("span", "dim", f.offset ? " + 0x" + f.offset.toString(16) : "")));
	pane.append(make("div", "dim path", [f.path && f.path + (f.line ? ":" + f.line : ""), f.object, !f.is_synthesized && f.pc].filter(Boolean).join(" \u00b7 ")));
	if (f.is_fault && t.fault_reason) pane.append(make("div", "note critical", t.fault_reason));
	drawNotes(pane, f.notes);
	source(pane, f);
	if (f.instruction && (f.is_fault || !i)) pane.append(make("pre", "insn", "=> " + f.instruction));
	const values = kept.get(t) || await valuesOf(t);
	if (state.thread !== t || state.frame !== i || state.tab !== "frame") return;
	const list = values.frames[i] || [], locals = list.filter((v) => v.place !== "parameter");
	drawTree(pane, "Parameters", parameters(list));
	drawTree(pane, "Locals", locals);
	if (!list.length) none(pane, f.path ? "no parameters and no locals here" : "no variables: there is no debug information for " + (called(f.object) || "this code"));
}
const ROWS = 300;
function table(pane, title, heads, rows) {
	if (!rows.length) return;
	pane.append(make("h2", "", title));
	const t = make("table"), head = make("tr");
	for (const h of heads) head.append(make("th", "", h));
	t.append(head);
	const more = button("chip", "", () => some(t.rows.length - 1));
	const some = (from) => {
		for (const r of rows.slice(from, from + ROWS)) { const tr = make("tr"); for (const c of r) tr.append(make("td", "", c === undefined ? "" : String(c))); t.append(tr); }
		more.textContent = rows.length - t.rows.length + 1 + " more";
		more.hidden = t.rows.length > rows.length;
	};
	pane.append(t, more);
	some(0);
}
function drawRegisters(pane) {
	const t = state.thread, f = t && framesOf(t)[state.frame];
	if (f && f.registers) table(pane, "Frame #" + state.frame, ["register", "value"], Object.entries(f.registers));
	if (t && t.registers) table(pane, "Thread " + t.tid, ["register", "value"], Object.entries(t.registers).concat([["rflags", t.rflags], ["fs_base", t.fs_base]].filter((x) => x[1])));
	if (t && t.syscall_text) pane.append(make("h2", "", "System call"), make("div", "", t.syscall_text));
}
async function drawGlobals(pane) {
	const by = new Map();
	for (const v of globals) { const k = called(v.object) + " " + (v.unit || ""); by.set(k, (by.get(k) || []).concat(v)); }
	for (const [k, list] of by) drawTree(pane, k, list);
	const t = state.thread, values = t && await valuesOf(t);
	if (state.thread !== t || state.tab !== "globals") return;
	if (values) drawTree(pane, "Thread-locals of " + t.tid, values.variables);
	if (!pane.childNodes.length) none(pane, "the snapshot has no globals and thread-locals (--global and --tls record them)");
}
function drawProcess(pane) {
	drawNotes(pane, data.notes);
	table(pane, "Attributes", ["key", "value"], Object.entries(data.attributes || {}));
	table(pane, "Process", ["", ""], [["command line", (data.argv || []).join(" ")], ["executable", data.exe && data.exe + (called(data.exe) === base(data.exe) ? "" : "  (started as " + called(data.exe) + ")")], ["mode", data.mode], ["pause", ms(data.pause_ns)], ["until all threads stopped", ms(data.stop_ns)],
		["prefetch", ms(data.rehearsal_ns)], ["total time", ms(data.total_ns)], ["probe", data.probe], ["condition", data.condition], ["id", data.id], ["taken by", data.dynprobe]].filter((r) => r[1]));
	for (const x of data.truncations || []) pane.append(make("div", "note warning", "left out: " + x));
	table(pane, "Environment", [""], (data.environ || []).map((x) => [x]));
	table(pane, "Open files", ["fd", "file"], (data.files || []).map((x) => [x.fd, x.target]));
	table(pane, "Limits", ["limit", "soft", "hard", "unit"], (data.limits || []).map((x) => [x.name, x.soft, x.hard, x.unit]));
}
function drawMaps(pane) {
	table(pane, "Mappings", ["start", "end", "", "offset", "path"], (data.maps || []).map((m) =>
		[m.start, m.end, (m.read ? "r" : "-") + (m.write ? "w" : "-") + (m.exec ? "x" : "-") + (m.shared ? "s" : "p"), m.offset, m.is_guard ? "(guard page)" : m.path]));
	table(pane, "Modules", ["start", "build-id", "path"], (data.objects || []).map((o) => [o.start, o.build_id, o.path + (o.name ? "  (started as " + o.name + ")" : "") + (o.has_debug ? "" : "  (no debug information)")]));
}
/* Visits every value of every thread, and yields to the browser now and then. Stops when `more` returns false. */
async function eachValue(more, visit) {
	const walk = (list, t, i, up) => {
		for (const v of list || []) {
			const p = up ? childPath(up.v, up.p, v) : nameOf(v);
			visit(v, t, i, p);
			walk(v.children, t, i, { v, p });
		}
	};
	walk(globals);
	for (const t of data.threads) {
		const values = kept.get(t) || await unpack(lines[2 + t.at]);
		walk(values.variables, t, 0);
		for (let i = 0, begin = performance.now(); i < values.frames.length; i++) {
			walk(values.frames[i], t, i);
			if (performance.now() - begin > 12) { await pause(); begin = performance.now(); }
			if (!more(t)) return;
		}
		if (!more(t)) return;
	}
}
function noteRow(pane, n, t, i, path) {
	const row = make("div", "found", make("span", "dim", t ? "thread " + t.tid + " #" + i + "  " : "process  "), path ? path + ": " : "", make("span", n.kind === "critical" ? "bad" : "", n.kind === "json" ? tidy(n.text) : n.text));
	if (t) { row.onclick = () => go(t, i, path); row.tabIndex = 0; }
	pane.append(row);
}
async function drawWarnings(pane) {
	const run = ++state.run;
	for (const n of data.notes || []) noteRow(pane, n);
	for (const t of data.threads) {
		for (const n of t.notes || []) noteRow(pane, n, t, 0);
		framesOf(t).forEach((f, i) => { for (const n of f.notes || []) noteRow(pane, n, t, i); });
	}
	await eachValue(() => run === state.run && state.tab === "warnings", (v, t, i, p) => { for (const n of v.notes || []) noteRow(pane, n, t, i, p); });
	if (run === state.run && !pane.childNodes.length) none(pane, "no annotations (--module-load runs pmodules, which make them)");
}
const drawn = { rows: 0, head: null };
function drawFound(pane) {
	drawn.rows = 0;
	drawn.head = make("div", "dim sum");
	pane.append(drawn.head);
	moreFound(pane);
}
/* Adds the hits found since the last call. */
function moreFound(pane) {
	if (state.tab !== "found" || !drawn.head) return;
	const all = state.searched >= data.threads.length, n = state.found.length;
	drawn.head.textContent = (n ? n + (n >= MOST ? " or more" : "") + (n === 1 ? " hit" : " hits") : all ? "nothing" : "") + " for \"" + clean(cut(state.query, 80)) + "\"" +
		(all || n >= MOST ? "" : "; " + state.searched + " of " + data.threads.length + " threads searched");
	for (; drawn.rows < n; drawn.rows++) {
		const x = state.found[drawn.rows], i = drawn.rows;
		const row = make("div", "found" + (i === state.at ? " hit" : ""), make("span", "dim", x.t ? "thread " + x.t.tid + " #" + x.i + "  " : "global  "), cut(x.text, 300));
		row.tabIndex = 0;
		row.onclick = () => { state.at = i; follow(x); };
		pane.append(row);
	}
}
const tabs = { frame: ["Frame", drawFrame], registers: ["Registers", drawRegisters], globals: ["Globals", drawGlobals], process: ["Process", drawProcess], maps: ["Maps", drawMaps], warnings: ["Annotations", drawWarnings], found: ["Search", drawFound] };
function drawTabs() {
	const bar = clear(el("tabs"));
	for (const [key, [title]] of Object.entries(tabs)) {
		if (key === "found" && !state.query) continue;
		const b = make("button", "", title);
		b.setAttribute("role", "tab");
		b.setAttribute("aria-selected", String(state.tab === key));
		b.dataset.tab = key;
		b.tabIndex = state.tab === key ? 0 : -1;
		b.onclick = () => pickTab(key);
		bar.append(b);
	}
	const pane = clear(el("body"));
	pane.scrollTop = 0;
	return tabs[state.tab][1](pane);
}

/* ---- moving ---- */
function remember() { if (state.thread) history.replaceState(null, "", "#t=" + state.thread.tid + "&f=" + state.frame); }
function pickThread(t, frame) {
	state.thread = t;
	state.group = groups.findIndex((g) => g.threads.includes(t));
	state.frame = frame === undefined ? ownFrame(t) : frame;
	markThread();
	drawFrames();
	return drawPicked();
}
function pickFrame(i) {
	state.frame = i;
	return drawPicked();
}
function drawPicked() {
	if (state.tab !== "registers") state.tab = "frame";
	markFrame();
	remember();
	return drawTabs();
}
function pickTab(key) { state.tab = key; return drawTabs(); }
async function go(t, i, path) {
	state.tab = "frame";
	await (t === state.thread ? pickFrame(i) : pickThread(t, i));
	if (path) openPath(path);
}
/* Opens the tree down to a variable and marks it. */
function openPath(path) {
	for (let steps = 0; steps < 64; steps++) {
		let best = null;
		for (const line of el("body").querySelectorAll(".line")) {
			if (line.dataset.path === path) {
				line.classList.add("pick");
				line.scrollIntoView({ block: "center" });
				return;
			}
			const p = line.dataset.path;
			if (p && path.includes(p) && line.getAttribute("aria-expanded") === "false" && (!best || p.length > best.dataset.path.length)) best = line;
		}
		if (!best) return;
		best.click();
	}
}

/* ---- search ---- */
const MOST = 500;
async function search(query) {
	const run = ++state.run, wanted = query.toLowerCase();
	const hit = (text) => text && text.toLowerCase().includes(wanted);
	const more = () => run === state.run && state.found.length < MOST;
	Object.assign(state, { query, found: [], at: -1, searched: 0, tab: wanted ? "found" : "frame" });
	const pane = el("body");
	drawTabs();
	if (!wanted) return;
	for (const t of data.threads) {
		if (more() && (hit(t.name) || String(t.tid).includes(wanted))) state.found.push({ t, i: 0, text: t.tid + " " + t.name });
		framesOf(t).forEach((f, i) => { if (more() && (hit(f.symbol) || hit(f.path) || hit(f.object))) state.found.push({ t, i, text: symbol(f) + "  " + where(f) }); });
	}
	moreFound(pane);
	await eachValue((t) => { state.searched = t.at; moreFound(pane); return more(); }, (v, t, i, p) => {
		if (more() && (hit(v.name) || hit(v.value) || hit(v.type) || hit(v.summary))) state.found.push({ t, i, path: p, text: p + " = " + short(v) });
	});
	if (run !== state.run) return;
	state.searched = data.threads.length;
	moreFound(pane);
}
async function follow(x) {
	if (x.t) await go(x.t, x.i, x.path); else { await pickTab("globals"); openPath(x.path); }
}

/* ---- keys ---- */
const panes = ["threads", "frames", "body"];
function move(step) {
	const pane = panes.indexOf(document.activeElement && document.activeElement.closest(".pane") ? document.activeElement.closest(".pane").id : "frames");
	if (pane === 0) {
		const next = Math.min(groups.length - 1, Math.max(0, state.group + step));
		if (groups.length) pickThread(groups[next].threads[0]);
	} else if (pane === 1) {
		if (state.thread) pickFrame(Math.min(framesOf(state.thread).length - 1, Math.max(0, state.frame + step)));
	} else {
		const lines = [...el("body").querySelectorAll(".line, .found[tabindex]")], at = lines.indexOf(document.activeElement);
		if (lines.length) lines[Math.min(lines.length - 1, Math.max(0, at + step))].focus();
	}
}
function side(step) {
	const line = document.activeElement;
	if (line && line.classList.contains("tree") && (line.getAttribute("aria-expanded") === "true") !== (step > 0)) { line.click(); return; }
	const pane = panes.indexOf(line && line.closest(".pane") ? line.closest(".pane").id : "frames");
	el(panes[Math.min(2, Math.max(0, pane + step))]).focus();
}
function step(by) {
	if (!state.found.length) return;
	state.at = (state.at + by + state.found.length) % state.found.length;
	follow(state.found[state.at]);
}
const keys = {
	ArrowDown: () => move(1), j: () => move(1), ArrowUp: () => move(-1), k: () => move(-1), ArrowRight: () => side(1), l: () => side(1), ArrowLeft: () => side(-1), h: () => side(-1),
	"/": () => el("search").focus(), n: () => step(1), N: () => step(-1), w: () => pickTab("warnings"), Escape: () => { pickTab("frame"); el("frames").focus(); },
	"?": () => el("keys").showModal(),
	Enter: () => { if (document.activeElement.matches(".line, .found")) document.activeElement.click(); else side(1); },
};
Object.keys(tabs).slice(0, 6).forEach((key, i) => { keys[String(i + 1)] = () => pickTab(key); });
document.addEventListener("keydown", (e) => {
	if (e.ctrlKey || e.metaKey || e.altKey || el("keys").open) return;
	if (e.key === "Enter" && e.target.closest("button")) return;
	if (e.target.closest("[role=tab]") && (e.key === "ArrowRight" || e.key === "ArrowLeft")) {
		const next = e.target[e.key === "ArrowRight" ? "nextSibling" : "previousSibling"];
		if (next) { next.click(); el("tabs").querySelector("[aria-selected=true]").focus(); }
		e.preventDefault();
		return;
	}
	if (e.target === el("search")) {
		if (e.key === "Escape") { el("search").value = ""; search(""); el("frames").focus(); }
		if (e.key === "Enter") { el("frames").focus(); step(1); }
		return;
	}
	if (!keys[e.key]) return;
	e.preventDefault();
	keys[e.key]();
});
let waiting = 0;
el("search").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(() => search(el("search").value), 80); });

/* ---- begin ---- */
function drawHeader() {
	el("title").replaceChildren(make("span", "", data.application || "a process"), make("span", "dim", " pid " + data.pid + (data.inner_pid ? " (inner " + data.inner_pid + ")" : "")));
	document.title = clean("dynprobe: " + data.application + " " + data.pid);
	const facts = [data.comm && data.comm !== data.application ? data.comm : "", data.exe, (data.time || "").replace("T", " ").replace(/\.\d+Z$/, " UTC"), data.threads.length + (data.threads.length === 1 ? " thread" : " threads") + (groups.length < data.threads.length ? ", " + groups.length + " different" : ""),
		data.mode === "core" ? "from a core file" : data.pause_ns ? "stopped for " + ms(data.pause_ns) : "", data.probe ? "probe " + data.probe : "", data.condition ? "when " + data.condition : ""];
	el("facts").textContent = clean(facts.filter(Boolean).join(" \u00b7 "));
	for (const c of data.classifiers || []) el("chips").append(make("span", "chip bad", c));
	for (const c of data.tags || []) el("chips").append(make("span", "chip", c));
	const fault = data.threads.find((t) => t.is_fault && t.fault_reason);
	if (!fault) return;
	const i = Math.max(0, framesOf(fault).findIndex((f) => f.is_fault)), f = framesOf(fault)[i], mine = ownFrame(fault), own = framesOf(fault)[mine];
	const place = (x) => symbol(x) + (where(x) ? " at " + where(x) : "");
	el("why").append(make("b", "", fault.fault_reason), make("span", "", f ? "in " + place(f) + (mine > i ? ", called by " + place(own) : "") + ", thread " + fault.tid : "thread " + fault.tid));
	el("why").onclick = () => go(fault, mine);
	el("why").hidden = false;
}
/* ---- verdict: what modules found, before anything else ---- */
const SVG = "http://www.w3.org/2000/svg";
function draw(tag, attributes, ...inside) {
	const node = document.createElementNS(SVG, tag);
	for (const [k, v] of Object.entries(attributes)) node.setAttribute(k, String(v));
	for (const x of inside) node.append(typeof x === "string" ? clean(x) : x);
	return node;
}
/* The threads of a cycle in a row: each waits for the lock on its arrow, which the next one holds; the last one waits for the first. */
const NODE = 150, GAP = 190, TOP = 12, HIGH = 44;
function drawCycle(list) {
	const n = list.length, width = n * NODE + (n - 1) * GAP + (n > 1 ? 8 : GAP), y = TOP + HIGH / 2, below = TOP + HIGH;
	const svg = draw("svg", { class: "cycle", width, height: below + 50, viewBox: `0 0 ${width} ${below + 50}`, role: "img" });
	svg.append(draw("title", {}, "deadlock of " + n + (n === 1 ? " thread" : " threads")));
	svg.append(draw("defs", {}, draw("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto" }, draw("path", { d: "M0 0L8 4L0 8z" }))));
	const at = (i) => 4 + i * (NODE + GAP), label = (x, top, w) => {
		const text = draw("text", { class: "lock", x, y: top }, cut(w.what + " " + w.lock, 27));
		text.append(draw("title", {}, w.what + " " + w.lock));
		svg.append(text);
	};
	list.forEach((w, i) => {
		if (i + 1 < n) {
			svg.append(draw("path", { d: `M${at(i) + NODE} ${y}H${at(i + 1) - 2}`, "marker-end": "url(#tip)" }));
			label(at(i) + NODE + GAP / 2, y - 7, w);
			svg.append(draw("text", { class: "dim", x: at(i) + NODE + GAP / 2, y: y + 16 }, "held by"));
		} else {
			const from = at(i) + NODE / 2, to = at(0) + NODE / 2 + (n > 1 ? 0 : -30);
			svg.append(draw("path", { d: `M${from} ${below}V${below + 27}H${to}V${below + 3}`, "marker-end": "url(#tip)" }));
			label((from + to) / 2 + (n > 1 ? 0 : 120), below + 19, w);
			svg.append(draw("text", { class: "dim", x: (from + to) / 2 + (n > 1 ? 0 : 120), y: below + 43 }, n > 1 ? "held by" : "held by itself"));
		}
	});
	list.forEach((w, i) => {
		const t = data.threads.find((x) => x.tid === w.tid), box = draw("g", t ? { tabindex: 0, role: "button", "aria-label": "thread " + w.tid } : {});
		box.append(draw("rect", { x: at(i), y: TOP, width: NODE, height: HIGH, rx: 7 }), draw("text", { class: "who", x: at(i) + NODE / 2, y: TOP + 19 }, cut(w.name || "thread", 18)),
			draw("text", { class: "dim", x: at(i) + NODE / 2, y: TOP + 35 }, "thread " + w.tid));
		if (t) {
			box.onclick = () => pickThread(t);
			box.onkeydown = (e) => { if (e.key === "Enter") { e.stopPropagation(); pickThread(t); } };
		}
		svg.append(box);
	});
	return svg;
}
/* A cycle comes from a module: anything else is left to its annotation. */
function cycleOf(text) {
	try {
		const list = JSON.parse(text);
		const good = (w) => w && Number.isInteger(w.tid) && [w.name, w.what, w.lock].every((x) => typeof x === "string");
		return Array.isArray(list) && list.length && list.length <= 64 && list.every(good) ? list : null;
	} catch { return null; }
}
/* The same for leak candidates. */
function leaksOf(text) {
	try {
		const list = JSON.parse(text);
		const good = (g) => g && ["size", "count", "bytes"].every((k) => Number.isInteger(g[k])) && typeof g.address === "string" && ["string", "undefined"].includes(typeof g.what);
		return Array.isArray(list) && list.length && list.length <= 100 && list.every(good) ? list : null;
	} catch { return null; }
}
function drawLeaks(list) {
	const row = (kind, cells) => make("tr", "", ...cells.map((x, i) => make(kind, i < 3 ? "number" : "", String(x))));
	return make("table", "leaks", row("th", ["blocks", "bytes each", "bytes", "the first at", "its first word, or text"]),
		...list.map((g) => row("td", [g.count, g.size, g.bytes, g.address, g.what || ""])));
}
/* Whoever asked for leaks wants to know of none, too. */
function drawNote(n, leaks) {
	const asked = n.module === "leaks" && n.kind === "comment" && /^(no leak candidates|most of what is in use)/.test(n.text);
	if (!asked && n.kind !== "critical" && n.kind !== "warning") return null;
	const isTitle = leaks && n.module === "leaks" && n.text.startsWith("leak candidates: no pointer");
	return make("div", "note " + n.kind, n.text, isTitle ? drawLeaks(leaks) : null);
}
const CYCLES = 4;
function drawVerdict() {
	const pane = el("verdict"), facts = data.attributes || {};
	const cycles = Object.keys(facts).filter((k) => /^deadlock\.cycle\.\d+$/.test(k)).map((k) => cycleOf(facts[k])).filter(Boolean);
	cycles.slice(0, CYCLES).forEach((list) => {
		pane.append(make("div", "note critical", "Deadlock: " + (list.length === 1 ? "a thread waits for a lock that it holds" : list.length + " threads wait for each other"), drawCycle(list)));
	});
	if (cycles.length > CYCLES) pane.append(make("div", "note critical", cycles.length - CYCLES + " more cycles"));
	const leaks = leaksOf(facts["leaks.groups"]);
	for (const n of data.notes || []) {
		const note = cycles.length && n.module === "deadlock" ? null : drawNote(n, leaks);
		if (note) pane.append(note);
	}
	const freed = Number(facts["heap.freed"] || 0), damaged = Number(facts["heap.damaged"] || 0);
	if (freed || damaged) pane.append(button("note critical", "Heap: " + [freed ? freed + " pointers to freed blocks" : "", damaged ? damaged + " damaged blocks" : ""].filter(Boolean).join(", ") + ". Show them", () => pickTab("warnings")));
	pane.hidden = !pane.childNodes.length;
}
/* The thread to begin with: it faulted or hit, or a module has most to say of it. */
function matters() {
	const loud = (kind) => data.threads.find((t) => (t.notes || []).some((n) => n.kind === kind) || framesOf(t).some((f) => (f.notes || []).some((n) => n.kind === kind)));
	return data.threads.find((t) => t.is_fault) || loud("critical") || loud("warning") || data.threads[0];
}
drawHeader();
drawVerdict();
drawThreads();
el("help").onclick = () => el("keys").showModal();
el("keys").onclick = () => el("keys").close();
const asked = /^#t=(\d+)&f=(\d+)$/.exec(location.hash);
const start = (asked && data.threads.find((t) => t.tid === Number(asked[1]))) || matters();
el("frames").focus({ preventScroll: true });
globals = await unpack(lines[1]);
if (start) await pickThread(start, asked ? Math.min(Number(asked[2]), Math.max(0, framesOf(start).length - 1)) : undefined); else drawTabs();
document.body.dataset.ready = "yes";
})();
