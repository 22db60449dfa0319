/* ---- search ---- */
const MOST_FOUND = 100000;
let searching = 0;
async function search(text) {
	const mine = ++searching, wants = text.toLowerCase(), found = [];
	const say = (part, done) => { el("facts").textContent = factsText + (text ? ` \u00b7 ${found.length.toLocaleString("en-US")}${found.length >= MOST_FOUND ? " or more" : ""} found${done ? "" : ", " + Math.round(100 * part) + "% searched"}` : ""); };
	if (!text) { shown.found = null; say(1, true); pickTab(shown.tab); return; }
	const parts = Math.ceil(trace.n / trace.part);
	for (let p = 0; p < parts && found.length < MOST_FOUND; p++) {
		const all = kept.get(p) || (await textOfPart(2 * p + 1)).split("\n");
		for (let k = 0, begin = performance.now(); k < all.length - 1; k++) {
			if (all[k].toLowerCase().includes(wants)) found.push(p * trace.part + k);
			if (k % 2048 === 0 && performance.now() - begin > 12) { await pause(); begin = performance.now(); }
		}
		if (mine !== searching) return;
		say((p + 1) / parts, false);
	}
	shown.found = Uint32Array.from(found.slice(0, MOST_FOUND));
	say(1, true);
	await pickTab("events");
	document.body.dataset.found = found.length;
}
/* The next event after the picked one: of those found, or of the wanted ones. */
function next(by) {
	const at = shown.picked;
	if (shown.found) {
		const list = shown.found;
		let k = 0;
		while (k < list.length && list[k] < at) k++;
		const j = at < 0 ? 0 : list[k] === at ? k + by : by > 0 ? k : k - 1;
		if (list[j] !== undefined) pick(list[j], true);
		return;
	}
	let i = at < 0 ? lower(shown.from, 0, trace.n) - (by > 0 ? 1 : 0) : at;
	do i += by; while (i >= 0 && i < trace.n && !wanted(i));
	if (i >= 0 && i < trace.n) pick(i, true);
}

/* ---- keys ---- */
function theme() {
	const root = document.documentElement, dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
	root.dataset.theme = dark ? "light" : "dark";
	recolor();
}
function recolor() { readColors(); draw(); drawTab(); if (flame) flame.draw(); }
function escape() {
	if (el("search").value) { el("search").value = ""; search(""); return; }
	if (shown.picked >= 0) { pick(-1); drawTab(); return; }
	if (shown.probe >= 0) only(shown.probe); else showAll();
}
function zoomToPicked() {
	const i = shown.picked;
	if (i < 0) return;
	const d = Math.max(trace.duration[i], (shown.to - shown.from) / 50);
	show(trace.time[i] - Math.max(0, trace.duration[i]) - d / 4, trace.time[i] + d / 4);
}
const keys = {
	"+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), "0": showAll, ArrowLeft: () => move(-0.25), ArrowRight: () => move(0.25),
	ArrowUp: () => { el("lanes").scrollTop -= 60; }, ArrowDown: () => { el("lanes").scrollTop += 60; }, n: () => next(1), p: () => next(-1), N: () => next(-1), Enter: zoomToPicked, "/": () => el("search").focus(),
	f: () => { if (shown.probe >= 0) only(shown.probe); else if (shown.picked >= 0) only(trace.probe[shown.picked]); }, t: theme, Escape: escape, "?": () => el("keys").showModal(),
};
Object.keys(tabs).forEach((key, k) => { keys[String(k + 1)] = () => pickTab(key); });
function onKey(e) {
	if (e.ctrlKey || e.metaKey || e.altKey || el("keys").open) return;
	if (e.target === el("search")) {
		if (e.key === "Escape") { el("search").value = ""; search(""); el("lanes").focus(); }
		if (e.key === "Enter") { el("lanes").focus(); next(1); }
		return;
	}
	const tab = e.target.closest && e.target.closest("[role=tab]");
	if (tab && (e.key === "ArrowLeft" || e.key === "ArrowRight")) {
		const other = e.key === "ArrowRight" ? tab.nextSibling : tab.previousSibling;
		if (other) { pickTab(other.dataset.tab); el("tabs").querySelector("[aria-selected=true]").focus(); }
		e.preventDefault();
		return;
	}
	if (e.key === "Enter" && e.target.closest("button")) return;
	if ((e.key === "ArrowUp" || e.key === "ArrowDown") && e.target.closest("main")) { if (e.target.id !== "list") return; e.preventDefault(); next(e.key === "ArrowDown" ? 1 : -1); return; }
	if (!keys[e.key]) return;
	e.preventDefault();
	keys[e.key]();
}

/* ---- begin ---- */
let factsText = "";
function button(id, text, press) { const b = make("button", "", text); b.type = "button"; b.id = id; b.onclick = press; return b; }
/* "server (pid 4242): handle_request, parse": a process has the name of its main thread, or of the first that has events. */
function titleOf() {
	const names = new Map(), some = (list, most) => list.slice(0, most).join(", ") + (list.length > most ? ", \u2026" : "");
	for (const [pid, tid, comm] of trace.threads) if (!names.has(pid) || tid === pid) names.set(pid, comm);
	const programs = [...names].map(([pid, comm]) => `${comm} (pid ${pid})`.trim());
	return clean(programs.length ? `${programs.length > 3 ? some([...new Set(names.values())], 3) + ` (${programs.length} processes)` : programs.join(", ")}: ${some(trace.probes, 3)}` : trace.title);
}
(async () => {
	if (typeof DecompressionStream === "undefined") { el("title").textContent = "This page needs a browser from 2023 or later (DecompressionStream)."; return; }
	readColors();
	await loadEvents((part) => { el("title").textContent = `Unpacking\u2026 ${Math.round(100 * part)}%`; });
	trace.pids = new Set(trace.threads.map((t) => t[0])).size;
	el("title").textContent = titleOf();
	document.title = "dynprobe: " + titleOf();
	const count = (n, what) => `${n.toLocaleString("en-US")} ${what}${n === 1 ? "" : "s"}`;
	factsText = trace.n ? [count(trace.n, "event"), "of " + count(trace.probes.length, "probe"), "in " + count(trace.threads.length, "thread"), trace.pids > 1 ? "of " + count(trace.pids, "process").replace("processs", "processes") : "", span(trace.time[trace.n - 1]), "from " + clock(0), clean(trace.title)].filter(Boolean).join(" \u00b7 ") : "no events";
	el("facts").textContent = factsText;
	el("zooms").append(button("every", "All events", () => only(shown.probe)), button("less", "\u2212", () => zoom(2)), button("more", "+", () => zoom(0.5)), button("all", "Whole time", showAll));
	el("less").setAttribute("aria-label", "Zoom out");
	el("more").setAttribute("aria-label", "Zoom in");
	layRows();
	watchLanes();
	hint();
	el("help").onclick = () => el("keys").showModal();
	el("keys").onclick = () => el("keys").close();
	el("theme").onclick = theme;
	document.addEventListener("keydown", onKey);
	let waiting = 0;
	el("search").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(() => search(el("search").value), 150); });
	let wide = el("lanes").clientWidth;
	new ResizeObserver(() => { if (el("lanes").clientWidth !== wide) { wide = el("lanes").clientWidth; draw(); if (shown.tab === "latency") drawTab(); } }).observe(el("lanes"));
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolor);
	el("lanes").focus({ preventScroll: true });
	showAll();
	await drawTab();
	document.body.dataset.ready = "yes";
})();
