# SPDX-License-Identifier: MIT
"""Tests the packages for Debian and `make install`: contents, fields, and that what they install runs where it was put.

`make check-long` installs them in bare systems (scripts/check-packages.sh, scripts/check-tarball.sh).
"""

import glob
import os
import re
import shutil
import subprocess
import tempfile

import harness

BUILD = os.path.dirname(os.path.abspath(harness.DYNPROBE))
DOCS = "usr/share/doc/dynprobe/docs/"
# All that the packages contain, but the pages of docs/.
CONTENTS = {
    "dynprobe": """
        usr/bin/dynprobe
        usr/share/bash-completion/completions/dynprobe usr/share/fish/vendor_completions.d/dynprobe.fish
        usr/share/zsh/vendor-completions/_dynprobe usr/share/zsh/site-functions/_dynprobe
        usr/share/doc/dynprobe/CHANGELOG.md usr/share/doc/dynprobe/README.md usr/share/doc/dynprobe/SECURITY.md
        usr/share/doc/dynprobe/changelog.gz usr/share/doc/dynprobe/copyright
        usr/share/doc/dynprobe/linked/libcapstone-dev usr/share/doc/dynprobe/linked/libiberty-dev
        usr/share/dynprobe/dynprobe-gdb.py usr/share/dynprobe/snapshot.schema.json
        usr/share/man/man1/dynprobe.1.gz usr/share/man/man1/dynprobe-snapshot.1.gz
        usr/share/man/man7/dynprobe-language.7.gz usr/share/man/man7/dynprobe-pmodule.7.gz""",
    "dynprobe-dev": """
        usr/include/dynprobe/pmodule.h usr/share/pkgconfig/dynprobe-pmodule.pc
        usr/share/doc/dynprobe-dev/changelog.gz usr/share/doc/dynprobe-dev/copyright""",
}


def run(*words, **kw):
    p = subprocess.run(words, capture_output=True, text=True, timeout=300, **kw)
    if p.returncode:
        raise AssertionError(f"{words}: {p.returncode}\n{p.stdout}\n{p.stderr}")
    return p.stdout


def files(root):
    return {os.path.relpath(os.path.join(where, name), root) for where, _, names in os.walk(root) for name in names}


def source(*path):
    with open(os.path.join(harness.ROOT, *path)) as f:
        return f.read()


VERSION = re.search(r"^project\(dynprobe VERSION ([\d.]+)", source("CMakeLists.txt"), re.MULTILINE)[1]


class Packages(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.made = tempfile.mkdtemp(prefix="dp-packages-")
        cls.addClassCleanup(shutil.rmtree, cls.made)
        run("cpack", "--config", f"{BUILD}/CPackConfig.cmake", "-G", "DEB", "-B", cls.made)
        cls.package = {os.path.basename(path).split("_")[0]: path for path in glob.glob(f"{cls.made}/*.deb")}
        for name, path in cls.package.items():
            run("dpkg-deb", "-x", path, f"{cls.made}/{name}")

    def field(self, package, name):
        return run("dpkg-deb", "-f", self.package[package], name).strip()

    def use(self, dynprobe):
        """Probes a program, and runs a module that must be found beside the executable."""
        t = self.target("spin")
        events = self.path("events")
        harness.tool("--pid", t.pid, "--function", "foo", "-n", 3, "-o", events, binary=dynprobe, status=0)
        with open(events) as f:
            self.assertEqual(f.read().count(" foo"), 3)
        harness.tool("snapshot", t.pid, "--module-load", "deadlock", "-o", self.path("x.dps"), binary=dynprobe, status=0)

    def test_the_packages_contain_what_they_should_and_nothing_else(self):
        modules = {f"usr/share/dynprobe/pmodules/{os.path.basename(p)}" for p in glob.glob(f"{harness.ROOT}/pmodules/scripts/*.lua")}
        self.assertEqual(set(self.package), set(CONTENTS))
        for name, listed in CONTENTS.items():
            found = {path for path in files(f"{self.made}/{name}") if not path.startswith(DOCS)}
            self.assertEqual(found, set(listed.split()) | (modules if name == "dynprobe" else set()))

    def test_links_of_the_installed_pages_lead_somewhere(self):
        root = f"{self.made}/dynprobe/usr/share/doc/dynprobe"
        for page in [f"{root}/README.md", *glob.glob(f"{root}/docs/*.md")]:
            with open(page) as f:
                links = re.findall(r"\]\(([\w./-]+\.(?:md|svg))[)#]", f.read())
            for link in links:
                there = os.path.normpath(os.path.join(os.path.dirname(page), link))
                is_for_developers = os.path.basename(link) in ("HACKING.md", "CONTRIBUTING.md")
                self.assertTrue(is_for_developers or os.path.exists(there), f"{page}: {link}")

    def test_fields(self):
        for name in CONTENTS:
            self.assertEqual(self.field(name, "Version"), VERSION)
        self.assertRegex(self.field("dynprobe", "Depends"), r"libc6 \(>= .*libdw1 ")
        self.assertEqual(self.field("dynprobe-dev", "Depends"), f"dynprobe (= {VERSION})")
        self.assertEqual(self.field("dynprobe-dev", "Architecture"), "all")

    def test_one_version_everywhere(self):
        self.assertEqual(harness.tool("--version", status=0).stdout.split()[1], VERSION)
        self.assertRegex(source("packaging", "changelog"), rf"\Adynprobe \({re.escape(VERSION)}\) ")
        self.assertEqual(re.search(r"^## ([\d.]+)", source("CHANGELOG.md"), re.MULTILINE)[1], VERSION)

    def test_the_unpacked_package_runs_in_any_directory(self):
        self.use(f"{self.made}/dynprobe/usr/bin/dynprobe")

    def test_make_install_below_destdir(self):
        root = self.path("root")
        run("cmake", "--install", BUILD, "--prefix", "/opt/probes", env=dict(os.environ, DESTDIR=root))
        self.assertEqual(set(os.listdir(root)), {"opt"})
        self.use(f"{root}/opt/probes/bin/dynprobe")
        self.assertIn("dynprobe", run("gzip", "-dc", f"{root}/opt/probes/share/man/man1/dynprobe.1.gz"))


if __name__ == "__main__":
    harness.main()
