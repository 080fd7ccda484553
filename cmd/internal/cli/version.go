package cli

import (
	"cmp"
	"regexp"
	"runtime/debug"
	"strings"
)

// release is the version where there is no git to ask, as in an unpacked
// archive of the sources: make VERSION=v1.2.3 sets it when linking.
var release = ""

// Build says what this program was built from. What is not known is "".
type Build struct {
	Version string // v1.2.3, or of a commit between two of those, as Go modules have it
	Commit  string // its beginning
	Date    string // of the commit, as in 2026-11-22
	Changed bool   // there were changes that are not committed
	Go      string // version of Go, and what it has compiled for
}

// Read returns the build of this program.
func Read() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return build(info, release)
}

// pseudo is the end of the version of a commit that has no tag: time and commit.
var pseudo = regexp.MustCompile(`[-.](\d{8})\d{6}-([0-9a-f]{12})(\+.*)?$`)

func build(info *debug.BuildInfo, release string) Build {
	b := Build{Version: info.Main.Version, Go: info.GoVersion}
	if m := pseudo.FindStringSubmatch(b.Version); m != nil { // installed from a module proxy: there are no settings
		b.Date, b.Commit = m[1][:4]+"-"+m[1][4:6]+"-"+m[1][6:], m[2]
	}
	platform := map[string]string{}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value[:min(12, len(s.Value))]
		case "vcs.time":
			b.Date, _, _ = strings.Cut(s.Value, "T")
		case "vcs.modified":
			b.Changed = s.Value == "true"
		case "GOOS", "GOARCH", "GOAMD64":
			platform[s.Key] = s.Value
		}
	}
	if platform["GOARCH"] != "" {
		b.Go += strings.TrimSuffix(" "+platform["GOOS"]+"/"+platform["GOARCH"]+" "+platform["GOAMD64"], " ")
	}
	if release != "" {
		b.Version = release
	}
	b.Version = cmp.Or(b.Version, "(devel)") // which is what Go calls it, most of the time
	return b
}

func (b Build) String() string {
	text := "version " + b.Version
	if b.Commit != "" {
		text += ", commit " + b.Commit
	}
	if b.Changed {
		text += " with changes"
	}
	return strings.TrimSuffix(text+", "+b.Go, ", ")
}
