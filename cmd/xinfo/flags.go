package main

import (
	_ "embed"
	"errors"
	"flag"
	"io"

	"github.com/xwarp/xwarp/cmd/internal/cli"
	"github.com/xwarp/xwarp/cmd/internal/getopt"
)

//go:embed usage.txt
var usage string

// options is what the command line says.
type options struct {
	help    bool
	check   string
	try     bool
	clean   bool
	json    bool
	list    bool
	table   bool
	verbose bool
	dev     string
	port    int // 0: all
	devs    []string
}

// page is what xinfo says about itself.
func page() cli.Page {
	return cli.Page{
		Name: "xinfo", Summary: "tell what network devices can do for xwarp, as ibv_devinfo does",
		Help: usage, Flags: flagSet(&options{}), SeeAlso: []string{"ibv_devinfo(1)", "ethtool(8)", "ip(8)"},
	}
}

func flagSet(o *options) *flag.FlagSet {
	fs := flag.NewFlagSet("xinfo", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&o.check, "check", "", "")
	fs.BoolVar(&o.try, "try", false, "")
	fs.BoolVar(&o.clean, "clean", false, "")
	fs.BoolVar(&o.json, "json", false, "")
	fs.BoolVar(&o.table, "table", false, "")
	for _, name := range []string{"l", "list"} {
		fs.BoolVar(&o.list, name, false, "")
	}
	for _, name := range []string{"v", "verbose"} {
		fs.BoolVar(&o.verbose, name, false, "")
	}
	for _, name := range []string{"d", "ib-dev"} {
		fs.StringVar(&o.dev, name, "", "")
	}
	for _, name := range []string{"i", "ib-port"} {
		fs.IntVar(&o.port, name, 0, "")
	}
	return fs
}

func parse(args []string) (options, error) {
	var o options
	fs := flagSet(&o)
	if err := fs.Parse(getopt.Split(args, "di")); err != nil {
		o.help = errors.Is(err, flag.ErrHelp)
		return o, err
	}
	o.devs = fs.Args()
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	return o, o.judge(given)
}

// judge says what is wrong with flags that were given.
func (o *options) judge(given map[string]bool) error {
	what := 0 // how many things are to be done
	for _, name := range []string{"check", "clean", "l", "list", "table"} {
		if given[name] {
			what++
		}
	}
	choice := given["d"] || given["ib-dev"] || given["i"] || given["ib-port"] || o.verbose
	switch {
	case given["check"] && o.check == "":
		return errors.New("--check needs the name of a device; xinfo lists them")
	case given["check"] && (what > 1 || choice || len(o.devs) > 0):
		return errors.New("--check is about one device and nothing else")
	case o.try && !given["check"]:
		return errors.New("--try goes with --check DEV: a card may reset itself when it is tried")
	case o.clean && (what > 1 || choice || o.json || len(o.devs) > 0):
		return errors.New("--clean goes alone")
	case (o.list || o.table) && (what > 1 || choice || o.json || len(o.devs) > 0):
		return errors.New("--list and --table go alone: for more, leave them away")
	case (given["d"] || given["ib-dev"]) && o.dev == "":
		return errors.New("-d needs the name of a device; xinfo -l lists them")
	case o.dev != "" && len(o.devs) > 0:
		return errors.New("-d names the only device to tell about: leave the others away, or -d")
	case (given["i"] || given["ib-port"]) && o.port <= 0:
		return errors.New("-i needs the number of a port, which is 1")
	}
	return nil
}
