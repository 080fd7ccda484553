package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// all are the commands, which every test here is about.
var all = []string{"xcheck", "xinfo", "xperf", "xping", "xrun"}

// Everything that needs the commands, which take long to link.
func TestCommands(t *testing.T) {
	bin := build(t)
	t.Run("about", func(t *testing.T) { testAbout(t, bin) })
	t.Run("install", func(t *testing.T) { testInstall(t, bin) })
	t.Run("install without Go", func(t *testing.T) { testInstallWithoutGo(t, bin) })
	t.Run("deb", func(t *testing.T) { testDeb(t, bin) })
}

// build returns a folder with the commands in it.
func build(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("it links all commands")
	}
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("there is no go to build the commands with")
	}
	dir := t.TempDir()
	// As the tests of the commands are built, so that there is little to do but link.
	if out, err := exec.Command(goTool, "build", "-buildvcs=false", "-pgo=off", "-o", dir+"/", "../../../cmd/...").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

// output returns what a command writes to its standard output.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil || errs.Len() > 0 {
		t.Fatalf("%s %q: %v, %s", filepath.Base(name), args, err, errs.String())
	}
	return string(out)
}

// What each command says about itself: nothing is missing, and nothing is there
// that others would not know what to do with.
func testAbout(t *testing.T, bin string) {
	offered := regexp.MustCompile(`-\*(?::0:\*)?\) offer='(.*)'`)
	for _, name := range all {
		command := filepath.Join(bin, name)
		help, page, script := output(t, command, "--help"), output(t, command, "--man"), output(t, command, "--completion")
		if version := output(t, command, "--version"); !regexp.MustCompile(`^` + name + ` of xwarp, version \S.*, go1\.\S+ \w+/\w+.*\n$`).MatchString(version) {
			t.Errorf("%s --version: %q", name, version)
		}
		for _, title := range []string{"NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "EXAMPLES", "SEE ALSO"} {
			if !strings.Contains(page, "\n.SH "+title+"\n") {
				t.Errorf("the manual page of %s has no section %s", name, title)
			}
		}
		options := offered.FindStringSubmatch(script)
		if options == nil {
			t.Fatalf("%s: no options are completed in\n%s", name, script)
		}
		for _, option := range append(strings.Fields(options[1]), "--json") { // which all know
			word := regexp.MustCompile(`(^|[^\w-])` + regexp.QuoteMeta(option) + `\b`)
			if !word.MatchString(help) || !word.MatchString(strings.ReplaceAll(strings.ReplaceAll(page, `\-`, "-"), `\fB`, " ")) {
				t.Errorf("%s %s is not in the help or not in the manual page", name, option)
			}
		}
		for line := range strings.Lines(help) {
			if len(strings.TrimSuffix(line, "\n")) > 100 {
				t.Errorf("%s --help: a line of %d characters: %s", name, len(line), line)
			}
		}
		lint(t, name, page)
	}
}

// lint lets the programs that show manual pages judge one.
func lint(t *testing.T, name, page string) {
	t.Helper()
	// A page of sources that are not from git has no date, and needs none.
	page = regexp.MustCompile(`(?m)^(\.TH \w+ 1) ""`).ReplaceAllString(page, `$1 "2026-11-22"`)
	judges := [][]string{{"man", "--warnings", "-E", "UTF-8", "-l", "-"}, {"groff", "-man", "-ww", "-z"}, {"mandoc", "-T", "lint"}}
	judges = slices.DeleteFunc(judges, func(c []string) bool {
		_, err := exec.LookPath(c[0])
		return err != nil
	})
	if len(judges) == 0 {
		t.Logf("nothing here shows manual pages: install man-db or mandoc, and %s is judged", name)
	}
	for _, judge := range judges {
		cmd := exec.Command(judge[0], judge[1:]...)
		var errs strings.Builder
		cmd.Stdin, cmd.Stderr = strings.NewReader(page), &errs
		cmd.Env = append(os.Environ(), "MANWIDTH=80")
		out, err := cmd.Output()
		if judge[0] == "mandoc" {
			errs.Write(out)
		}
		if err != nil || errs.Len() > 0 {
			t.Errorf("%s of %s: %v, %s", judge[0], name, err, errs.String())
		}
	}
}
