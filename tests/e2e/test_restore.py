#!/usr/bin/python3
"""Restores that are cut, that have no room, and that are lied to."""
import copy
import os
import shutil
import subprocess
import sys
import time
import unittest

import kit
import remote

MIB = 1 << 20
ROOT = os.geteuid() == 0


def can_mount():
    return subprocess.run(["unshare", "--mount", "true"],
                          stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


class Cut(kit.Case):
    def test_cut_again_and_again(self):
        size = 192 * MIB
        self.save("step-1.safetensors", 1, size=size, count=24)
        self.push()
        fresh = self.path("fresh")
        present = 0
        for _ in range(int(os.environ.get("CKPTSYNC_CUTS", "8"))):
            life = self.start("restore", self.remote, fresh)
            time.sleep(self.random.uniform(0.02, 0.5))
            kit.murder(self.mark)
            life.wait()
            visible = kit.tree(fresh, ignore=[
                name for name in os.listdir(fresh)
                if name.startswith(".ckptsync-restore-")]
                ) if os.path.isdir(fresh) else {}
            self.assertIn(visible, ({}, kit.tree(self.folder)))
            plan = self.restore(fresh, "--dry-run", "--json").json
            self.assertGreaterEqual(plan["present_bytes"], present,
                                    "what was fetched is lost")
            present = plan["present_bytes"]
        done = self.restore(fresh, "--json").json
        self.assertEqual(done["fetched_bytes"], plan["fetch_bytes"])
        self.assertLessEqual(done["fetched_bytes"], size + MIB - present)
        self.assertEqual(kit.tree(fresh), kit.tree(self.folder))

    def test_nothing_is_fetched_twice(self):
        self.save("step-1.safetensors", 1, size=16 * MIB)
        self.push()
        fresh = self.path("fresh")
        self.restore(fresh)
        self.assertEqual(self.restore(fresh, "--json").json["fetched_bytes"],
                         0)

    def test_what_lies_here_is_not_fetched(self):
        self.save("step-1.safetensors", 1, size=32 * MIB)
        self.save("best.safetensors", 1, size=32 * MIB)
        self.push()
        fresh = self.path("fresh")
        kit.write(fresh + "/step-1.safetensors",
                  kit.checkpoint(1, size=32 * MIB))
        done = self.restore(fresh, "--all", "--json").json
        self.assertLessEqual(done["fetched_bytes"], MIB)
        self.assertEqual(kit.tree(fresh), kit.tree(self.folder))


class Room(kit.Case):
    def within(self, mount, expect):
        """Restore into scratch/disk/fresh with something mounted there."""
        os.mkdir(self.path("disk"))
        return self.run_program(
            "--mount", "sh", "-ec", mount + '; exec "$@"', "sh",
            kit.PROGRAM, "restore", self.remote, self.path("disk", "fresh"),
            program="unshare", expect=expect)

    def prepare(self):
        self.save("step-1.safetensors", 1, size=32 * MIB)
        self.push()

    @unittest.skipUnless(can_mount(), "needs to mount")
    def test_a_full_disk(self):
        self.prepare()
        done = self.within("mount -t tmpfs -o size=16m none "
                           + self.path("disk"), expect=None)
        self.assertEqual(done.status, 1, str(done))
        self.assertRegex(done.err, "(?i)space|room|full")
        self.assertEqual(len(done.err.strip().splitlines()), 1, str(done))

    @unittest.skipUnless(can_mount(), "needs to mount")
    def test_a_read_only_disk(self):
        self.prepare()
        done = self.within("mount -t tmpfs -o ro none " + self.path("disk"),
                           expect=None)
        self.assertEqual(done.status, 1, str(done))
        self.assertRegex(done.err, "(?i)read-only")

    @unittest.skipUnless(can_mount(), "needs to mount")
    def test_a_mount_point(self):
        self.prepare()
        os.makedirs(self.path("disk"))
        self.run_program(
            "--mount", "sh", "-ec", "mount -t tmpfs none " + self.path("disk")
            + '; "$@"; cp -a ' + f"{self.path('disk')} {self.path('seen')}",
            "sh", kit.PROGRAM, "restore", self.remote, self.path("disk"),
            program="unshare")
        self.assertEqual(kit.tree(self.path("seen")), kit.tree(self.folder))

    def test_a_file_in_the_way(self):
        self.prepare()
        kit.write(self.path("file"), "x")
        self.restore(self.path("file"), expect=1)
        self.assertEqual(kit.read(self.path("file")), b"x")


class Hostile(kit.Case):
    """A manifest is what somebody who can write to the bucket wants."""
    def prepare(self):
        self.remote_folder()
        self.save("step-1.safetensors", 1)
        self.push()
        self.there = remote.Remote(self.remote)

    def refuse(self, change, *options):
        """Exit 4, one line, nothing written outside or inside."""
        backup = self.path("backup")
        shutil.rmtree(backup, ignore_errors=True)
        shutil.copytree(self.there.folder, backup)
        self.there.replace_newest(change)
        target = self.path("deep", "er", "target")
        shutil.rmtree(self.path("deep"), ignore_errors=True)
        os.makedirs(target)
        kit.write(self.path("deep", "victim"), "untouched")
        done = self.restore(target, *options, expect=4)
        self.assertEqual(len(done.err.strip().splitlines()), 1, str(done))
        self.assertEqual(kit.tree(self.path("deep")), {
            "victim": kit.sha256(b"untouched"), "er": "folder",
            "er/target": "folder"}, str(done))
        shutil.rmtree(self.there.folder)
        shutil.copytree(backup, self.there.folder)
        return done

    def entry(self, **changes):
        def change(manifest):
            manifest["entries"][0].update(changes)
        return change

    def test_paths(self):
        self.prepare()
        for path in ("../victim", "../../victim", "/etc/victim", "a/../../v",
                     "./step-1.safetensors", "a//b", "", ".", "..", "a/.",
                     "x" * 5000, "a\0b", ".ckptsync-restore-1/x"):
            with self.subTest(path=path[:30]):
                self.refuse(self.entry(path=path))

    def test_links(self):
        self.prepare()

        def link(target, path="escape", beneath=None):
            def change(manifest):
                manifest["entries"].insert(0, {
                    "kind": "link", "path": path, "target": target})
                if beneath:
                    manifest["entries"][1]["path"] = beneath
            return change
        for target in ("/etc", "../..", "a/../../..", "", "x" * 5000):
            with self.subTest(target=target[:30]):
                self.refuse(link(target))
        with self.subTest("a file beneath a link"):
            self.refuse(link(".", beneath="escape/step-1.safetensors"))
        with self.subTest("a file twice"):
            def twice(manifest):
                manifest["entries"].append(manifest["entries"][0])
            self.refuse(twice)

    def test_pointers_and_companions(self):
        self.prepare()
        for field in ("pointers", "companions"):
            def change(manifest, field=field):
                entry = copy.deepcopy(manifest["entries"][0])
                entry["path"] = "../../victim"
                manifest[field].append(entry)
            with self.subTest(field):
                self.refuse(change, "--all")

    def test_extents(self):
        self.prepare()
        huge = (1 << 63) - 1

        def extents(make):
            def change(manifest):
                entry = manifest["entries"][0]
                entry["extents"] = make(entry["extents"], entry)
            return change
        cases = {
            "a gap": lambda e, f: e[1:],
            "nothing": lambda e, f: [],
            "an overlap": lambda e, f: e[:1] + e,
            "no such chunk": lambda e, f: [[99, 0, f["size_bytes"]]],
            "a negative chunk": lambda e, f: [[-1, 0, f["size_bytes"]]],
            "behind the chunk": lambda e, f: [[e[0][0], huge, e[0][2]]] + e[1:],
            "a huge length": lambda e, f: [[e[0][0], 0, huge]],
            "a wrapping sum": lambda e, f: e + [[e[0][0], 0, huge],
                                                [e[0][0], 0, huge]],
            "a float": lambda e, f: [[e[0][0], 0.5, e[0][2]]] + e[1:],
            "text": lambda e, f: ["all"],
        }
        for name, make in cases.items():
            with self.subTest(name):
                self.refuse(extents(make))

    def test_numbers(self):
        self.prepare()
        for size in (-1, 1 << 62, (1 << 63) - 1, 1e300, "1", None, 0):
            with self.subTest(size=size):
                self.refuse(self.entry(size_bytes=size))
        for mode in (0o104755, -1, 1 << 40):
            with self.subTest(mode=mode):
                self.refuse(self.entry(mode=mode))

    def test_chunks(self):
        self.prepare()

        def chunk(**changes):
            def change(manifest):
                manifest["chunks"][0].update(changes)
            return change
        for key in ("../../../etc/passwd", "/etc/passwd", "claim",
                    "node-0000/x"):
            with self.subTest(key=key):
                self.refuse(chunk(key=key))
        with self.subTest("another length"):
            self.refuse(chunk(size_bytes=7))

    def test_shapes(self):
        self.prepare()

        def change(**changes):
            return lambda manifest: manifest.update(changes)
        for what in ({"entries": None}, {"entries": {}}, {"entries": [1]},
                     {"chunks": "x"}, {"name": 5}, {"name": "../x"},
                     {"format": "one"}, {"role": "king"},
                     {"keeps": [{"key": "../../x", "name": "x"}]},
                     {"resume": "../x"}):
            with self.subTest(str(what)):
                self.refuse(change(**what))

    def test_a_needed_feature_is_named(self):
        self.prepare()
        for what in ("feature", "codec"):
            def change(manifest, what=what):
                if what == "feature":
                    manifest["needs_reader"] = ["telepathy"]
                else:
                    manifest["needs_reader"] = []
                    manifest["chunks"][0]["codec"] = "telepathy"
            self.there.replace_newest(change)
            done = self.restore(self.path("fresh"), expect=1)
            self.assertIn("telepathy", done.err)
            self.assertFalse(os.path.exists(self.path("fresh")))

    def test_links_in_the_target_are_not_followed(self):
        self.prepare()
        target, outside = self.path("target"), self.path("outside")
        os.makedirs(target)
        kit.write(outside, "mine")
        os.symlink(outside, target + "/step-1.safetensors")
        self.restore(target, "--force", expect=None)
        self.assertEqual(kit.read(outside), b"mine")


class Damaged(kit.Case):
    def prepare(self):
        self.remote_folder()
        self.hashes = {}
        for step in (1, 2):
            name = f"step-{step}.safetensors"
            self.hashes[name] = self.save(name, step, size=20 * MIB)
            self.push()
        self.there = remote.Remote(self.remote)

    def falls_back(self):
        fresh = self.path("fresh")
        done = self.restore(fresh, expect=4)
        said = [line for line in done.err.splitlines()
                if line.startswith("ckptsync restore: ")]
        self.assertEqual(len(said), 1, str(done))
        self.assertIn("--fallback", said[0])
        self.assertEqual(kit.tree(fresh, ignore=[
            name for name in (os.listdir(fresh) if os.path.isdir(fresh)
                              else []) if name.startswith(".ckptsync-")]), {})
        done = self.restore(fresh, "--fallback")
        self.assertIn("step-1.safetensors", done.err + done.out)
        name = "step-1.safetensors"
        self.assertEqual(
            {path: digest for path, digest in kit.tree(fresh).items()
             if not path.startswith(".ckptsync-")}, {name: self.hashes[name]})

    def test_the_newest_manifest(self):
        self.prepare()
        self.there.damage(self.there.newest())
        self.falls_back()

    def test_a_manifest_that_was_cut(self):
        self.prepare()
        os.truncate(self.there.path(self.there.newest()), 100)
        self.falls_back()

    def own_chunk(self):
        """A chunk of the newest checkpoint that no other one needs."""
        term = self.there.term()
        manifest = self.there.read(self.there.newest())
        return [chunk["key"] for chunk in manifest["chunks"]
                if chunk["key"].startswith(term)][-1]

    def test_a_chunk(self):
        self.prepare()
        self.there.damage(self.own_chunk())
        self.falls_back()

    def test_a_chunk_that_was_cut(self):
        self.prepare()
        os.truncate(self.there.path(self.own_chunk()), 5)
        self.falls_back()

    def test_a_chunk_that_is_gone(self):
        self.prepare()
        os.unlink(self.there.path(self.own_chunk()))
        self.falls_back()

    def test_an_old_manifest_costs_only_itself(self):
        self.prepare()
        old = self.there.read(self.there.newest())["keeps"][0]
        self.there.damage(old["key"])
        for command in ("list", "show"):
            done = self.run_program(command, self.remote)
            self.assertIn("step-2.safetensors", done.out)
            self.assertIn("step-1.safetensors is lost", done.err)
        self.assertIn(old["key"], done.err)
        fresh = self.path("fresh")
        done = self.restore(fresh)
        self.assertIn("step-1.safetensors is lost", done.err)
        self.assertEqual(kit.tree(fresh)["step-2.safetensors"],
                         self.hashes["step-2.safetensors"])
        done = self.restore(self.path("other"), "--checkpoint",
                            "step-1.safetensors", expect=4)
        self.assertIn(old["key"], done.err)
        done = self.restore(self.path("all"), "--all", expect=4)
        self.assertIn("step-2.safetensors", kit.tree(self.path("all")))
        self.run_program("run", self.path("second"), self.remote, "--",
                         "test", "-e", self.path("second")
                         + "/step-2.safetensors")
        # And a new checkpoint is made durable beside it.
        self.hashes["step-3.safetensors"] = self.save(
            "step-3.safetensors", 3, size=20 * MIB)
        self.push()
        done = self.restore(self.path("third"))
        self.assertIn("step-3.safetensors", kit.tree(self.path("third")))

    def test_run_never_starts_from_zero_instead(self):
        self.prepare()
        self.there.damage(self.own_chunk())
        self.run_program("run", self.path("fresh"), self.remote, "--",
                         "touch", self.path("started"), expect=4)
        self.assertFalse(os.path.exists(self.path("started")))


if __name__ == "__main__":
    kit.main()
