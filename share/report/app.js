// SPDX-License-Identifier: MIT
"use strict";
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const el = (id) => document.getElementById(id);
const state = { group: 0, thread: null, frame: 0, tab: "frame", found: [], at: -1, query: "" };

/* Everything of the program's is put in as text, never as markup. */
function make(tag, cls, ...inside) {
	const node = document.createElement(tag);
	if (cls) node.className = cls;
	for (const x of inside) if (x !== null && x !== undefined && x !== "") node.append(x);
	return node;
}
function clear(node) { node.replaceChildren(); return node; }
const base = (path) => (path || "").replace(/^.*\//, "");
const ms = (ns) => ns === undefined ? "" : (ns / 1e6).toFixed(2) + " ms";
const framesOf = (t) => t.frames || [];
const symbol = (f) => f.symbol || f.pc;
const where = (f) => f.path ? base(f.path) + (f.line ? ":" + f.line : "") : base(f.object);

/* ---- threads: those with the same stack are one row; faulting ones stand alone ---- */
const groups = [];
{
	const known = new Map();
	for (const t of data.threads) {
		const key = t.is_fault ? "tid " + t.tid : framesOf(t).map((f) => f.pc + (f.is_inline ? symbol(f) : "")).join(" ");
		if (!known.has(key)) { known.set(key, { threads: [], open: false }); groups.push(known.get(key)); }
		known.get(key).threads.push(t);
	}
}

function rowOfThread(t, text, group, picked) {
	const row = make("div", "row" + (t.is_fault ? " fault" : ""));
	row.setAttribute("role", "option");
	row.setAttribute("aria-selected", String(picked));
	row.append(make("span", t.is_fault ? "bad" : "", (t.is_fault ? "F " : (t.state || "?") + " ") + text), make("br"),
		make("small", "", framesOf(t).length ? symbol(framesOf(t)[0]) : "no frames"));
	row.onclick = () => { state.group = group; pickThread(t); };
	return row;
}

function drawThreads() {
	const pane = clear(el("threads"));
	groups.forEach((g, i) => {
		const t = g.threads[0], many = g.threads.length > 1;
		const row = rowOfThread(t, many ? g.threads.length + " threads, first " + t.tid + " " + t.name : t.tid + " " + t.name, i,
			state.group === i && (!g.open || state.thread === t));
		row.dataset.group = i;
		pane.append(row);
		if (many && state.group === i) {
			const list = make("div", "row");
			for (const other of g.threads) {
				const chip = make("span", "chip" + (other === state.thread ? " hit" : ""), String(other.tid));
				chip.onclick = (e) => { e.stopPropagation(); pickThread(other); };
				list.append(chip);
			}
			pane.append(list);
		}
	});
}

function drawFrames() {
	const pane = clear(el("frames")), t = state.thread;
	if (!t) return;
	if (t.fault_reason) pane.append(make("div", "row bad", t.fault_reason));
	for (const k of t.kernel_frames || []) pane.append(make("div", "row dim", "kernel  " + k.symbol));
	framesOf(t).forEach((f, i) => {
		const row = make("div", "row" + (f.is_fault ? " fault" : ""));
		row.setAttribute("role", "option");
		row.setAttribute("aria-selected", String(i === state.frame));
		row.dataset.frame = i;
		const parameters = (f.variables || []).filter((v) => v.place === "parameter");
		row.append(make("span", "n", "#" + i), make("span", f.is_guess ? "none" : "", symbol(f)),
			make("span", "dim", "(" + parameters.map((v) => v.name + "=" + short(v)).join(", ") + ")"), make("br"),
			make("small", "", [where(f), f.is_inline ? "inlined" : "", f.is_signal ? "signal frame" : "", f.is_tail ? "tail call" : "", f.is_guess ? "guessed" : ""].filter(Boolean).join(" · ")));
		if (f.siginfo) row.append(make("div", "note critical", f.siginfo.name + (f.siginfo.reason ? ": " + f.siginfo.reason : "")));
		row.onclick = () => pickFrame(i);
		pane.append(row);
		drawNotes(pane, f.notes);
	});
	if (t.more_frames) pane.append(make("div", "row none", "at least " + t.more_frames + " more frames"));
	if (t.unwind_end) pane.append(make("div", "row none", "the stack ends here: " + t.unwind_end));
	drawNotes(pane, t.notes);
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
	return v.is_string || v.kind === "string" ? "str" : "num";
}
function drawVariable(v, path) {
	const box = make("div", "var"), children = v.is_hidden ? [] : v.children || [];
	const line = make("span", "line" + (children.length ? " tree" : ""));
	line.tabIndex = -1;
	line.append(make("span", "", nameOf(v)), " ", make("span", "type", v.type), " = ", make("span", valueClass(v), v.summary || v.value));
	if (v.why && !v.state) line.append(make("span", "none", " (" + v.why + ")"));
	if (v.is_late) line.append(make("span", "none", " (read after the process went on)"));
	if (v.is_shared) line.append(make("span", "none", " (shared memory)"));
	if (v.is_synthesized) line.append(make("span", "dim", " ◆"));
	line.title = [v.address ? "at " + v.address : "", v.size ? v.size + " bytes" : "", path].filter(Boolean).join(" · ");
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
	if (v.kind === "reference") return c.name === "*" || !c.name ? "(*" + path + ")" : path + "->" + c.name;
	return c.name ? path + "." + c.name : path + "[" + c.index + "]";
}
/* Children are drawn when they are opened: a snapshot may hold a hundred thousand values. */
function toggle(box, line, v, path, open) {
	const isOpen = line.getAttribute("aria-expanded") === "true";
	if (open === isOpen) return;
	line.setAttribute("aria-expanded", String(!isOpen));
	if (isOpen) { box.querySelectorAll(":scope > .var").forEach((x) => x.remove()); return; }
	for (const c of v.children) box.append(drawVariable(c, childPath(v, path, c)));
	if (v.more) box.append(make("div", "var", make("span", "none", "... " + v.more + " more")));
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
	pane.append(make("h2", "", base(f.path)));
	const pre = make("pre");
	s.lines.split("\n").forEach((text, i) => {
		if (Math.abs(s.first + i - f.line) > 6) return;
		pre.append(make("span", s.first + i === f.line ? "at" : "", String(s.first + i).padStart(5) + "  " + text), "\n");
	});
	pane.append(pre);
}
function drawFrame(pane) {
	const f = state.thread && framesOf(state.thread)[state.frame];
	if (!f) { pane.append(make("div", "none", "no frame")); return; }
	pane.append(make("div", "", make("b", "", symbol(f)), make("span", "dim", f.offset ? " + 0x" + f.offset.toString(16) : "")));
	pane.append(make("div", "dim", [f.pc, f.object, f.path && f.path + ":" + f.line].filter(Boolean).join(" · ")));
	if (f.instruction) pane.append(make("pre", "", f.instruction));
	drawNotes(pane, f.notes);
	drawTree(pane, "Parameters", (f.variables || []).filter((v) => v.place === "parameter"));
	drawTree(pane, "Locals", (f.variables || []).filter((v) => v.place !== "parameter"));
	source(pane, f);
}
function table(pane, title, heads, rows) {
	if (!rows.length) return;
	pane.append(make("h2", "", title));
	const t = make("table"), head = make("tr");
	for (const h of heads) head.append(make("th", "", h));
	t.append(head);
	for (const r of rows) { const tr = make("tr"); for (const c of r) tr.append(make("td", "", c === undefined ? "" : String(c))); t.append(tr); }
	pane.append(t);
}
function drawRegisters(pane) {
	const t = state.thread, f = t && framesOf(t)[state.frame];
	if (f && f.registers) table(pane, "Frame #" + state.frame, ["register", "value"], Object.entries(f.registers));
	if (t && t.registers) table(pane, "Thread " + t.tid, ["register", "value"], Object.entries(t.registers).concat([["rflags", t.rflags], ["fs_base", t.fs_base]].filter((x) => x[1])));
	if (t && t.syscall_text) pane.append(make("h2", "", "System call"), make("div", "", t.syscall_text));
}
function drawGlobals(pane) {
	const by = new Map();
	for (const v of data.globals || []) { const k = base(v.object) + " " + (v.unit || ""); by.set(k, (by.get(k) || []).concat(v)); }
	for (const [k, list] of by) drawTree(pane, k, list);
	if (state.thread) drawTree(pane, "Thread-locals of " + state.thread.tid, state.thread.variables);
	if (!pane.childNodes.length) pane.append(make("div", "none", "no globals were asked for (--global, --tls)"));
}
function drawProcess(pane) {
	drawNotes(pane, data.notes);
	table(pane, "Attributes", ["key", "value"], Object.entries(data.attributes || {}));
	table(pane, "Process", ["", ""], [["command line", (data.argv || []).join(" ")], ["executable", data.exe], ["mode", data.mode], ["pause", ms(data.pause_ns)], ["until all stood", ms(data.stop_ns)],
		["rehearsal", ms(data.rehearsal_ns)], ["whole time", ms(data.total_ns)], ["probe", data.probe], ["condition", data.condition], ["id", data.id], ["taken by", data.dynprobe]].filter((r) => r[1]));
	for (const x of data.truncations || []) pane.append(make("div", "note warning", "left out: " + x));
	table(pane, "Environment", [""], (data.environ || []).map((x) => [x]));
	table(pane, "Open files", ["fd", "file"], (data.files || []).map((x) => [x.fd, x.target]));
	table(pane, "Limits", ["limit", "soft", "hard", "unit"], (data.limits || []).map((x) => [x.name, x.soft, x.hard, x.unit]));
}
function drawMaps(pane) {
	table(pane, "Mappings", ["start", "end", "", "offset", "path"], (data.maps || []).map((m) =>
		[m.start, m.end, (m.read ? "r" : "-") + (m.write ? "w" : "-") + (m.exec ? "x" : "-") + (m.shared ? "s" : "p"), m.offset, m.is_guard ? "(guard page)" : m.path]));
	table(pane, "Modules", ["start", "path", "build-id"], (data.objects || []).map((o) => [o.start, o.path + (o.has_debug ? "" : "  (no debug information)"), o.build_id]));
}
function eachNote(visit) {
	const variables = (list, t, i, path) => { for (const v of list || []) { const p = path ? childPath(path.v, path.p, v) : nameOf(v); for (const n of v.notes || []) visit(n, t, i, p); variables(v.children, t, i, { v, p }); } };
	for (const n of data.notes || []) visit(n);
	variables(data.globals);
	for (const t of data.threads) {
		for (const n of t.notes || []) visit(n, t, 0);
		framesOf(t).forEach((f, i) => { for (const n of f.notes || []) visit(n, t, i); variables(f.variables, t, i); });
	}
}
function drawWarnings(pane) {
	eachNote((n, t, i, path) => {
		const row = make("div", "found", make("span", "dim", t ? "thread " + t.tid + " #" + i + " " : "process "), path ? path + ": " : "", make("span", n.kind === "critical" ? "bad" : "", n.kind === "json" ? tidy(n.text) : n.text));
		if (t) row.onclick = () => go(t, i, path);
		pane.append(row);
	});
	if (!pane.childNodes.length) pane.append(make("div", "none", "no annotations"));
}
function drawFound(pane) {
	pane.append(make("div", "dim", state.found.length + (state.found.length === MOST ? " or more" : "") + " hits for \"" + state.query + "\""));
	state.found.forEach((x, i) => {
		const row = make("div", "found" + (i === state.at ? " hit" : ""), make("span", "dim", x.t ? "thread " + x.t.tid + " #" + x.i + " " : "global "), x.text);
		row.onclick = () => { state.at = i; follow(x); };
		pane.append(row);
	});
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
		b.onclick = () => pickTab(key);
		bar.append(b);
	}
	tabs[state.tab][1](clear(el("body")));
}

/* ---- moving ---- */
function remember() { if (state.thread) history.replaceState(null, "", "#t=" + state.thread.tid + "&f=" + state.frame); }
function pickThread(t) {
	state.thread = t;
	state.group = groups.findIndex((g) => g.threads.includes(t));
	state.frame = Math.max(0, framesOf(t).findIndex((f) => f.is_fault));
	draw();
}
function pickFrame(i) {
	state.frame = i;
	state.tab = state.tab === "registers" ? "registers" : "frame";
	draw();
}
function pickTab(key) { state.tab = key; drawTabs(); }
function draw() {
	drawThreads();
	drawFrames();
	drawTabs();
	remember();
	for (const row of document.querySelectorAll(".row[aria-selected=true]")) row.scrollIntoView({ block: "nearest" });
}
function go(t, i, path) {
	state.tab = "frame";
	pickThread(t);
	pickFrame(i);
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
function search(query) {
	state.query = query;
	state.found = [];
	state.at = -1;
	const wanted = query.toLowerCase();
	const hit = (text) => text && text.toLowerCase().includes(wanted);
	const variables = (list, t, i, up) => {
		for (const v of list || []) {
			if (state.found.length >= MOST) return;
			const p = up ? childPath(up.v, up.p, v) : nameOf(v);
			if (hit(v.name) || hit(v.value) || hit(v.type) || hit(v.summary)) state.found.push({ t, i, path: p, text: p + " = " + short(v) });
			variables(v.children, t, i, { v, p });
		}
	};
	if (wanted) {
		for (const t of data.threads) {
			if (hit(t.name) || String(t.tid).includes(wanted)) state.found.push({ t, i: 0, text: t.tid + " " + t.name });
			framesOf(t).forEach((f, i) => {
				if (state.found.length < MOST && (hit(f.symbol) || hit(f.path) || hit(f.object))) state.found.push({ t, i, text: symbol(f) + "  " + where(f) });
				variables(f.variables, t, i);
			});
		}
		variables(data.globals);
	}
	state.tab = wanted ? "found" : "frame";
	drawTabs();
}
function follow(x) {
	const q = state.query;
	if (x.t) go(x.t, x.i, x.path); else { pickTab("globals"); openPath(x.path); }
	state.query = q;
}

/* ---- keys ---- */
const panes = ["threads", "frames", "body"];
function move(step) {
	const pane = panes.indexOf(document.activeElement && document.activeElement.closest(".pane") ? document.activeElement.closest(".pane").id : "frames");
	if (pane === 0) {
		const next = Math.min(groups.length - 1, Math.max(0, state.group + step));
		pickThread(groups[next].threads[0]);
	} else if (pane === 1) {
		pickFrame(Math.min(framesOf(state.thread).length - 1, Math.max(0, state.frame + step)));
	} else {
		const lines = [...el("body").querySelectorAll(".line")], at = lines.indexOf(document.activeElement);
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
	Enter: () => { if (document.activeElement.classList.contains("tree")) document.activeElement.click(); else side(1); },
};
Object.keys(tabs).slice(0, 6).forEach((key, i) => { keys[String(i + 1)] = () => pickTab(key); });
document.addEventListener("keydown", (e) => {
	if (e.ctrlKey || e.metaKey || e.altKey) return;
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
el("title").textContent = data.application + " · pid " + data.pid;
document.title = "dynprobe: " + data.application + " " + data.pid;
el("facts").textContent = [data.time, data.threads.length + (data.threads.length === 1 ? " thread" : " threads"), "mode " + data.mode, data.pause_ns ? "held for " + ms(data.pause_ns) : "", data.probe ? "probe " + data.probe : "", data.condition ? "when " + data.condition : ""].filter(Boolean).join(" · ");
for (const c of data.classifiers || []) el("chips").append(make("span", "chip bad", c));
for (const c of data.tags || []) el("chips").append(make("span", "chip", c));
const asked = /^#t=(\d+)&f=(\d+)$/.exec(location.hash);
const start = (asked && data.threads.find((t) => t.tid === Number(asked[1]))) || data.threads.find((t) => t.is_fault) || data.threads[0];
if (start) { pickThread(start); if (asked) pickFrame(Math.min(Number(asked[2]), Math.max(0, framesOf(start).length - 1))); } else drawTabs();
el("frames").focus();
})();
