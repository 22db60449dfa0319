/* ---- tabs: table, histograms, flame graph, over time, calls, run ---- */
const shown = { tab: "", wanted: "", all: false, sort: {}, weight: 0 };
const FIRST_ROWS = 200, MORE_ROWS = 2000;

/* A table whose heads sort; the first rows, and a button for more. `sorted`: rows may change their order. */
function table(key, columns, rows, sorted) {
	const body = make("table"), head = make("tr"), box = make("section"), by = shown.sort[key];
	columns.forEach((c, i) => {
		const th = make("th", c.text ? "text" : "");
		th.scope = "col";
		if (sorted) {
			const b = make("button", "", c.title);
			b.type = "button";
			b.onclick = () => { shown.sort[key] = { i, down: by && by.i === i ? !by.down : !c.text }; drawTab(); const again = document.querySelectorAll("#body table[data-key='" + key + "'] th button")[i]; if (again) again.focus(); };
			if (by && by.i === i) th.setAttribute("aria-sort", by.down ? "descending" : "ascending");
			th.append(b);
		} else {
			th.append(clean(c.title));
		}
		head.append(th);
	});
	body.dataset.key = key;
	body.append(head);
	const list = by ? rows.slice().sort(order(columns[by.i], by.down)) : rows;
	let done = 0;
	const more = make("button", "more");
	more.type = "button";
	const add = (n) => {
		for (const row of list.slice(done, done + n)) {
			const tr = make("tr");
			for (const c of columns) { const v = c.of(row); tr.append(c.cell ? c.cell(row) : isStack(v) ? stackCell(v) : make("td", c.text ? "text" : "", v === undefined ? "" : c.show(v))); }
			body.append(tr);
		}
		done = Math.min(list.length, done + n);
		more.hidden = done === list.length;
		more.textContent = count(list.length - done, "more row");
	};
	more.onclick = () => add(MORE_ROWS);
	add(FIRST_ROWS);
	box.append(make("div", "scroll", body), more);
	return box;
}
function stackCell(stack) {
	const frames = framesOf(stack).reverse(), list = make("ol"), box = make("details");
	list.start = 0;
	for (const f of stack) list.append(make("li", "", placeOf(f)));
	box.append(make("summary", "", frames.slice(0, 4).join(" \u2190 ") + (frames.length > 4 ? ` \u2190 ${frames.length - 4} more` : "")), list);
	return make("td", "text", box);
}
const wanted = (rows, text) => (shown.wanted ? rows.filter((r) => text(r).includes(shown.wanted)) : rows);
const nothing = () => make("div", "dim", shown.wanted ? "nothing found" : "no rows");

function drawTable(pane) {
	const rows = wanted(run.rows, textOf);
	if (!rows.length) { pane.append(nothing()); return; }
	const hit = shown.all || shown.wanted ? rows : rows.filter((r) => Number(r.hits)), left = rows.length - hit.length;
	pane.append(table("rows", [...keyColumns(run.rows), ...valueColumns(run.rows)], hit, true));
	if (!left) return;
	const all = make("button", "more", count(left, "more row") + " without a hit");
	all.type = "button";
	all.onclick = () => { shown.all = true; drawTab(); };
	pane.append(all);
}

/* ---- histograms ---- */
const bucketsOf = (row) => partsOf(row).filter((p) => p.buckets && p.buckets.length);
/* The next of the times 0, 1, 2, 5, 10, 20, 50 and so on, by which durations are counted. */
const nextRound = (v) => (v === 0 ? 1 : !/^[125]0*$/.test(String(v)) ? NaN : String(v)[0] === "2" ? v / 2 * 5 : 2 * v);
/* The empty buckets between, which the file leaves out. */
function filled(buckets, unit) {
	const round = unit === "ns" && buckets.every((b) => b.from === undefined || b.to === undefined || Number(b.to) === nextRound(Number(b.from)));
	const list = [], log2 = buckets.every((b) => b.from === undefined || b.to === undefined || Number(b.to) <= 1 || Number(b.to) === 2 * Number(b.from));
	for (const b of buckets) {
		const last = list[list.length - 1], step = last && Number(last.to) - Number(last.from);
		for (let at = last ? Number(last.to) : NaN; at < Number(b.from) && list.length < 400 && step > 0;) {
			const to = round ? nextRound(at) : log2 ? Math.max(1, 2 * at) : at + step;
			list.push({ from: at, to, hits: 0 });
			at = to;
		}
		list.push(b);
	}
	return list;
}
const binary = (v) => { let u = -1; for (; v >= 1024 && v % 1024 === 0; u++) v /= 1024; return number(v) + (u < 0 ? "" : "KMGTPE"[u]); };
function histogram(part) {
	const list = make("div", "hist"), all = filled(part.buckets, part.unit), most = Math.max(...all.map((b) => Number(b.hits))), bound = (v) => (part.unit === "ns" ? span(Number(v)) : binary(Number(v)));
	for (const b of all) {
		const bar = make("i"), from = b.from === undefined ? -Infinity : Number(b.from), to = b.to === undefined ? Infinity : Number(b.to);
		const marks = ["p50", "p90", "p99"].filter((p) => part[p] >= from && part[p] < to);
		bar.style.width = b.hits ? Math.max(0.3, 100 * b.hits / most) + "%" : "0";
		bar.hidden = !b.hits;
		list.append(make("span", "", b.from === undefined ? "< " + bound(b.to) : b.to === undefined ? "\u2265 " + bound(b.from) : bound(b.from) + " \u2013 " + bound(b.to)), make("span", "", number(Number(b.hits))), bar, make("span", "marks", marks.join(" ")));
	}
	return list;
}
const titleOfRow = (row) => [nameOf(row), ...("key" in row ? [keyText(row.key)] : row.stack ? [keyText(row.stack)] : Object.values(row.keys || {}).map(keyText))].join(" \u00b7 ");
const MOST_CHARTS = 40;
function drawHistograms(pane) {
	const rows = wanted(run.rows.filter((r) => bucketsOf(r).length), textOf);
	for (const row of rows.slice(0, MOST_CHARTS))
		for (const part of bucketsOf(row)) {
			const facts = ["p50", "p90", "p99"].filter((p) => part[p] !== undefined).map((p) => `${p} ${shownAs(Number(part[p]), part.unit)}`);
			pane.append(make("section", "", make("h2", "", [titleOfRow(row), part.value, count(Number(row.hits), "hit"), ...facts].join(" \u00b7 ")), histogram(part)));
		}
	if (!rows.length) pane.append(nothing());
	if (rows.length > MOST_CHARTS) pane.append(make("div", "dim", `${rows.length - MOST_CHARTS} more rows: search to see one's histogram`));
}

/* ---- flame graph ---- */
let flame = null;
function drawFlame(pane) {
	const choices = weightsOf(), w = choices[shown.weight % choices.length], data = flameOf(w.list(), w.unit, `${programs()}: ${w.name} by stack`);
	flame = new dynprobeFlame.Flame(pane, data, { part: true, hanging: true });
	flame.view.classList.add("hanging");
	if (choices.length < 2) return;
	const by = make("button", "", "By " + choices[(shown.weight + 1) % choices.length].name);
	by.type = "button";
	by.onclick = () => { shown.weight++; drawTab(); };
	flame.back.before(by);
}

/* ---- over time: hits of each interval ---- */
function drawRounds(pane) {
	const series = new Map();
	for (const r of run.rounds) { const key = titleOfRow(r) + (r.pid === null ? "" : ` (${r.pid})`); if (!series.has(key)) series.set(key, []); series.get(key).push(r); }
	const total = (list) => list.reduce((n, r) => n + Number(r.hits), 0), all = [...series].filter(([key]) => key.toLowerCase().includes(shown.wanted)).sort((a, b) => total(b[1]) - total(a[1]));
	for (const [key, list] of all.slice(0, MOST_CHARTS)) {
		const strip = make("div", "strip"), rates = list.map((r) => (r.seconds > 0 ? r.hits / r.seconds : 0)), most = Math.max(...rates, 1e-9);
		rates.forEach((rate, i) => {
			const bar = make("i"), p99 = partsOf(list[i])[0];
			bar.style.height = 100 * rate / most + "%";
			bar.title = `${number(rate)} /s` + (p99 && p99.p99 !== undefined ? `, p99 ${shownAs(Number(p99.p99), p99.unit)}` : "");
			strip.append(bar);
		});
		strip.setAttribute("role", "img");
		strip.setAttribute("aria-label", `${clean(key)}: hits per second in ${list.length} intervals, ${number(Math.min(...rates))} to ${number(most)}`);
		pane.append(make("section", "", make("h2", "", `${key} \u00b7 ${count(list.length, "interval")} \u00b7 ${number(Math.min(...rates))} to ${number(most)} hits/s`), strip));
	}
	if (!all.length) pane.append(nothing());
	if (all.length > MOST_CHARTS) pane.append(make("div", "dim", `${all.length - MOST_CHARTS} more rows`));
}

/* ---- calls ---- */
const timeColumns = [
	{ title: "total", of: (c) => Number(c.total_ns), show: span }, { title: "self", of: (c) => Number(c.self_ns), show: span }, { title: "calls", of: (c) => Number(c.calls), show: number },
	{ title: "mean", of: (c) => Number(c.total_ns) / Math.max(1, Number(c.calls)), show: span },
];
function drawCalls(pane) {
	const name = (c) => String(c.path ? c.path[c.path.length - 1] : c.function), rows = wanted(run.calls, (c) => (c.path || [c.function]).join(" ").toLowerCase()), tree = rows.some((c) => c.path);
	const first = { title: "function", text: true, of: name, show: String };
	if (tree) first.cell = (c) => make("td", "text tree", "  ".repeat(c.path.length - 1) + name(c));
	pane.append(rows.length ? table("calls", [first, ...timeColumns], rows, !tree) : nothing());
}

/* ---- the run ---- */
const plain = (title, of) => ({ title, text: true, of: (x) => { const v = of(x); return v === null ? undefined : v; }, show: String });
function facts(pane, pairs) {
	const list = make("dl");
	for (const [name, v] of pairs) if (v !== undefined && v !== null && v !== "") list.append(make("dt", "", name), make("dd", "", String(v)));
	pane.append(list);
}
function drawRun(pane) {
	const s = run.summary;
	for (const n of run.notes) pane.append(make("span", "note", n));
	for (const p of run.profiles) {
		pane.append(make("h2", "", `${p.comm ? p.comm + " " : ""}(pid ${p.pid})`));
		facts(pane, Object.entries(p).filter(([k, v]) => !["type", "version", "pid", "comm"].includes(k) && typeof v !== "object").map(([k, v]) => [k, typeof v === "number" ? number(v) : v]));
	}
	if (!s) return;
	const lost = Object.entries(s.lost || {}).filter(([k, n]) => n > 0 && k !== "total").map(([k, n]) => `${number(n)} ${k}`).join(", ");
	pane.append(make("h2", "", "What was asked"));
	facts(pane, [["asked", s.asked], ["placed", s.placed], ["refused", s.refused], ["hits", s.hits === null ? "" : number(s.hits)], ["lost", lost || "none"], ["measured for", span(s.armed_ns || 0)], ["attached in", span(s.attach_ns || 0)], ["longest pause", span(Math.max(s.pause_attach_ns || 0, s.pause_detach_ns || 0))], ["ended by", s.ended_by]]);
	const has = (list) => Array.isArray(list) && list.length;
	if (has(s.processes)) pane.append(make("h2", "", "Processes"), table("processes", [plain("process", (p) => p.comm || "?"), { title: "pid", of: (p) => p.pid, show: String }, { title: "placed", of: (p) => p.placed, show: number }, { title: "hits", of: (p) => Number(p.hits), show: number }], s.processes, true));
	if (has(s.probes)) pane.append(make("h2", "", "Probes"), table("probes", [plain("probe", (p) => p.title || p.name), plain("asked as", (p) => p.spec), plain("state", (p) => p.state), { title: "hits", of: (p) => Number(p.hits), show: number }, { title: "lost", of: (p) => Number((p.lost || {}).total || 0), show: number }, ...(s.probes.some((p) => p.reason) ? [plain("why not", (p) => (p.reason ? `${p.reason}${p.tag ? ` [${p.tag}]` : ""}` : undefined))] : [])], wanted(s.probes, (p) => `${p.name} ${p.title || ""} ${p.spec}`.toLowerCase()), true));
}

/* ---- begin ---- */
let tabs = {};
function choose() {
	const all = { table: ["Table", drawTable, run.rows.length], calls: ["Calls", drawCalls, run.calls.length], histograms: ["Histograms", drawHistograms, run.rows.some((r) => bucketsOf(r).length)], flame: ["Flame graph", drawFlame, weightsOf().length], rounds: ["Over time", drawRounds, run.rounds.length], run: ["Run", drawRun, run.summary || run.profiles.length || run.notes.length] };
	tabs = Object.fromEntries(Object.entries(all).filter(([, t]) => t[2]));
	shown.tab = tabs.histograms && run.rows.length === 1 ? "histograms" : Object.keys(tabs)[0];
}
function drawTab() {
	const bar = el("tabs"), pane = el("body");
	bar.replaceChildren(...Object.entries(tabs).map(([key, [title]]) => {
		const b = make("button", "", title);
		b.type = "button";
		b.setAttribute("role", "tab");
		b.setAttribute("aria-selected", String(shown.tab === key));
		b.tabIndex = shown.tab === key ? 0 : -1;
		b.dataset.tab = key;
		b.onclick = () => pickTab(key);
		return b;
	}));
	pane.className = shown.tab === "flame" ? "full" : "";
	pane.replaceChildren();
	flame = null;
	if (shown.tab) tabs[shown.tab][1](pane);
	if (shown.tab !== "flame" && shown.tab !== "run") pane.prepend(...run.notes.map((n) => make("span", "note", n)));
	document.body.dataset.drawn = shown.tab;
}
function pickTab(key) { shown.tab = key; drawTab(); }
function theme() {
	const root = document.documentElement, dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
	root.dataset.theme = dark ? "light" : "dark";
	if (flame) flame.draw();
}
function search(text) { shown.wanted = text.toLowerCase(); if (shown.tab !== "flame") drawTab(); }
function onKey(e) {
	if (e.ctrlKey || e.metaKey || e.altKey || el("keys").open) return;
	if (e.target === el("search")) {
		if (e.key === "Escape") { el("search").value = ""; search(""); }
		if (e.key === "Escape" || e.key === "Enter") el("search").blur();
		return;
	}
	const tab = e.target.closest && e.target.closest("[role=tab]");
	const key = Object.keys(tabs)[Number(e.key) - 1];
	if (tab && (e.key === "ArrowLeft" || e.key === "ArrowRight")) {
		const other = e.key === "ArrowRight" ? tab.nextSibling : tab.previousSibling;
		if (other) { pickTab(other.dataset.tab); el("tabs").querySelector("[aria-selected=true]").focus(); }
	} else if (key) pickTab(key);
	else if (e.key === "/") el("search").focus();
	else if (e.key === "t") theme();
	else if (e.key === "?") el("keys").showModal();
	else if (e.key === "Escape") { el("search").value = ""; search(""); }
	else return;
	e.preventDefault();
}
(async () => {
	if (typeof DecompressionStream === "undefined") { el("title").textContent = "This page needs a browser from 2023 or later (DecompressionStream)."; return; }
	read(JSON.parse(await dynprobeFlame.textOf(el("data").textContent.trim())));
	choose();
	const title = clean([programs(), measured()].filter(Boolean).join(": ") || run.file), rows = run.rows.length, s = run.summary, seconds = run.rows.length ? run.rows[0].seconds : run.profiles.length ? run.profiles[0].seconds : s ? (s.armed_ns || 0) / 1e9 : 0;
	el("title").textContent = title;
	document.title = "dynprobe: " + title;
	el("facts").textContent = clean([run.calls.length ? count(run.calls.length, "row") : count(rows, "row"), rows ? count(run.rows.reduce((n, r) => n + Number(r.hits), 0), run.profiles.length ? (run.profiles.some((p) => p.off_cpu) ? "wait" : "sample") : "hit") : "", seconds ? "in " + span(seconds * 1e9) : "", s ? `${count(s.placed, "place")} probed${s.refused ? `, ${number(s.refused)} refused` : ""}` : "", run.file].filter(Boolean).join(" \u00b7 "));
	el("help").onclick = () => el("keys").showModal();
	el("keys").onclick = () => el("keys").close();
	el("theme").onclick = theme;
	document.addEventListener("keydown", onKey);
	let waiting = 0;
	el("search").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(() => search(el("search").value), 150); });
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (flame) flame.draw(); });
	drawTab();
	document.body.dataset.ready = "yes";
})();
