#!/usr/bin/python3
"""--help, the man pages, README and the program never disagree."""
import os
import re
import shutil
import subprocess
import unittest

import kit

PAGE = os.path.join(kit.TREE, "man", "ckptsync.1")
FORMAT = os.path.join(kit.TREE, "man", "ckptsync-format.5")
README = os.path.join(kit.TREE, "README.md")


def commands():
    """What `ckptsync --help` lists."""
    text = subprocess.run([kit.PROGRAM, "--help"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    return re.findall(r"(?m)^  ([a-z]+) ", text)


def page_options():
    """command -> options, from the headings and items of the man page."""
    found = {command: set() for command in commands()}
    those = ()
    for line in kit.read(PAGE).decode().split("\n"):
        if line.startswith((".Sh", ".Ss")):
            match = re.fullmatch(r"\.Ss Options of (.*)", line)
            those = () if not match else list(found) \
                if match[1] == "every command" \
                else [word for word in re.split(", | and ", match[1])]
        if line.startswith(".It Fl"):
            for command in those:
                found.setdefault(command, set())
                found[command] |= {"--" + name for name in
                                   re.findall(r"Fl Fl ([a-z-]+)", line)}
                found[command] |= {"-" + name for name in
                                   re.findall(r"Fl ([a-z])(?= |$)", line)}
    return found


class Pages(kit.Case):
    def help_options(self, command):
        text = self.run_program(command, "--help").out
        return set(re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)", text))

    def test_help_and_the_man_page_name_the_same_options(self):
        page = page_options()
        self.assertEqual(set(page), set(commands()))
        for command in commands():
            with self.subTest(command):
                self.assertEqual(self.help_options(command), page[command])

    def test_every_option_exists(self):
        """getopt refuses what it does not know; what needs a value says so."""
        for command, options in page_options().items():
            for option in sorted(options - {"--help", "-h", "--version"}):
                with self.subTest(f"{command} {option}"):
                    # Of these, what needs none has too many.
                    places = ("a", "b", "c") if command in (
                        "doctor", "status", "flush", "notice") else ()
                    done = self.run_program(command, option, *places, expect=2)
                    self.assertNotRegex(
                        done.err, "(?i)(unknown|unrecognized|invalid) option")

    def test_every_command_is_in_the_man_page(self):
        page = kit.read(PAGE).decode()
        for command in commands():
            for line in f".Cm {command}", f".It Cm {command}":
                with self.subTest(line):
                    self.assertTrue(f"\n{line}\n" in page)

    def test_names_that_are_left_out(self):
        """The man page has every pattern of passing files."""
        source = kit.read(os.path.join(kit.TREE, "agent", "watch",
                                       "layout.c")).decode()
        body = source[source.index("\nlayout_is_ignored("):]
        body = body[:body.index(", name)")]
        patterns = "".join(re.findall(r'"([^"]*)"', body)).split("|")
        self.assertGreater(len(patterns), 5)
        page = kit.read(PAGE).decode()
        start = page.index("\nLeft out are files")
        words = page[start:page.index("\n.Sh", start)].split()
        for pattern in patterns + [".last.pt"]:
            with self.subTest(pattern):
                self.assertIn(pattern, words)

    def test_exit_statuses(self):
        """The man page's table is the one of base/error.h, plus 0."""
        header = kit.read(os.path.join(kit.TREE, "agent", "base",
                                       "error.h")).decode()
        classes = set(re.findall(r"ERROR_[A-Z_]+ = (\d+)", header))
        page = kit.read(PAGE).decode()
        table = page[page.index(".Sh EXIT STATUS"):page.index(".Sh EXAMPLES")]
        self.assertEqual(set(re.findall(r"(?m)^\.It (\d+)$", table)), classes)

    def test_options_in_the_readme_exist(self):
        known = set().union(*page_options().values()) | {"--long"}
        text = kit.read(README).decode()
        for block in re.findall(r"(?m)^    .*ckptsync .*$", text):
            for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", block):
                self.assertIn(option, known | {"--resume_from_checkpoint"})

    def test_commands_in_the_readme_exist(self):
        text = kit.read(README).decode()
        for name in set(re.findall(r"\b((?:contrib|tests|man)/[\w./-]+)",
                                   text)):
            self.assertTrue(os.path.exists(
                os.path.join(kit.TREE, name.rstrip("."))), name)

    @unittest.skipUnless(shutil.which("mandoc"), "needs mandoc")
    def test_the_pages_are_sound(self):
        for page in (PAGE, FORMAT):
            done = subprocess.run(["mandoc", "-Tlint", "-Wwarning", page],
                                  stdout=subprocess.PIPE, text=True,
                                  check=False)
            self.assertEqual(done.stdout, "")

    @unittest.skipUnless(shutil.which("mandoc"), "needs mandoc")
    def test_members_of_a_manifest_are_documented(self):
        folder = self.remote_folder()
        kit.write(self.folder + "/last.ckpt.json", "{}")
        os.makedirs(self.folder + "/checkpoint-5")
        kit.write(self.folder + "/results.csv", "1\n")
        self.save("step-1.safetensors", 1)
        os.symlink("step-1.safetensors", self.folder + "/last")
        self.push()
        import remote
        there = remote.Remote(self.remote)
        page = subprocess.run(["mandoc", "-Tascii", FORMAT], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
        page = re.sub(".\b", "", page)     # bold and underlined

        def members(value, path=""):
            if isinstance(value, list):
                for each in value:
                    yield from members(each, path)
            elif isinstance(value, dict):
                for name, each in value.items():
                    yield name
                    if name not in ("environment", "agent"):
                        yield from members(each, name)
        documents = [there.read(there.newest()),
                     kit.json.loads(there.get(there.term() + "/open.json")),
                     kit.json.loads(there.get("ckptsync.json"))]
        for name in sorted(set(members(documents))):
            with self.subTest(name):
                self.assertRegex(page, rf"\b{re.escape(name)}\b")
        self.assertIn(kit.read(os.path.join(folder, "ckptsync.json"))
                      .decode().strip(), page)


if __name__ == "__main__":
    kit.main()
