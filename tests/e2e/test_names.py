#!/usr/bin/python3
"""Checkpoints whose names are not UTF-8."""
import base64
import os
import shutil

import kit

NAME = b"mod\xe8le-1.safetensors"
CODED = base64.b64encode(NAME).decode()


class Names(kit.Case):
    def setUp(self):
        super().setUp()
        os.mkdir(self.folder)
        with open(os.path.join(os.fsencode(self.folder), NAME), "wb") as f:
            f.write(kit.checkpoint(1))

    def listed(self, done):
        return [(each["name_b64"], each["state"])
                for each in done.json["checkpoints"]]

    def test_push_lists_it(self):
        done = self.push("--json")
        self.assertEqual(self.listed(done), [(CODED, "durable")])
        self.assertIn("1 known", self.push().out)

    def test_push_beside_an_agent_lists_it(self):
        agent = self.start("agent", self.folder, self.remote)
        agent.event("began")
        done = self.push("--json")
        self.assertEqual([name for name, _ in self.listed(done)], [CODED])
        done = self.run_program("status", "--json", self.folder)
        self.assertEqual(
            done.json["agents"][0]["newest"]["name_b64"], CODED)
        self.assertIn("1 known", self.push().out)

    def run_and_tell(self):
        out = self.path("told")
        self.run_program("run", self.folder, self.remote, "--", "sh", "-c",
                         f"printf %s \"$CKPTSYNC_RESTORED\" >{out}",
                         patience=30)
        return kit.read(out)

    def test_the_trainer_is_started_from_it(self):
        path = os.path.join(os.fsencode(self.folder), NAME)
        self.assertEqual(self.run_and_tell(), path)
        shutil.rmtree(self.folder)
        self.assertEqual(self.run_and_tell(), path)

    def test_in_a_directory_and_a_remote_of_such_names(self):
        folder = os.fsencode(self.path("")) + b"d\xe8"
        remote = b"file://" + os.fsencode(self.path("")) + b"r\xe8"
        shutil.copytree(os.fsencode(self.folder), folder)
        self.run_program("run", os.fsdecode(folder), os.fsdecode(remote),
                         "--", "true", patience=30)
        agent = self.start("agent", os.fsdecode(folder), os.fsdecode(remote))
        agent.event("began")
        for words in (["push", os.fsdecode(folder), os.fsdecode(remote)],
                      ["status", os.fsdecode(folder)],
                      ["notice", "--json", os.fsdecode(folder)]):
            self.run_program(*words)


if __name__ == "__main__":
    kit.main()
