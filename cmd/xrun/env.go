package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/internal/job/launch"
)

// pairFlags take a name and a value, as two arguments or as NAME=VALUE.
var pairFlags = []string{"env", "genv"}

// joinPairs makes NAME=VALUE of the two arguments after the flags that take
// them: package flag knows only flags with one. It leaves the program and its
// arguments alone.
func joinPairs(fs *flag.FlagSet, args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		name, _, hasValue := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(args[i], "-"), "-"), "=")
		if args[i] == "--" || name == args[i] || name == "" {
			return append(out, args[i:]...)
		}
		out = append(out, args[i])
		f := fs.Lookup(name)
		if f == nil || hasValue || isBool(f) || i+1 == len(args) {
			continue
		}
		i++
		value := args[i]
		if slices.Contains(pairFlags, name) && !strings.Contains(value, "=") && i+1 < len(args) {
			i++
			value += "=" + args[i]
		}
		out = append(out, value)
	}
	return out
}

func isBool(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// variableFlag defines the flag that sets a variable, for the agents, the ranks and a testbed.
func variableFlag(fs *flag.FlagSet, c *launch.Config, variable string) {
	v := config.Find(variable)
	define := fs.Func
	if v.Switch() {
		define = fs.BoolFunc
	}
	for _, name := range v.Flags() {
		define(name, "", func(s string) error {
			if yes, err := strconv.ParseBool(s); err == nil && v.Switch() {
				s = map[bool]string{false: "0", true: "1"}[yes]
			}
			if err := v.Set(s); err != nil {
				return err
			}
			return addPair(&c.Env, v.Name+"="+s)
		})
	}
}

// addPair sets a variable of some ranks.
func addPair(env *[]string, s string) error {
	if name, _, ok := strings.Cut(s, "="); !ok || name == "" {
		return fmt.Errorf("want NAME VALUE or NAME=VALUE")
	}
	*env = append(*env, s)
	return config.CheckNames((*env)[len(*env)-1:])
}

// addEnvList sets variables of the ranks to what they are here.
func addEnvList(env *[]string, list string) error {
	for name := range strings.SplitSeq(list, ",") {
		if strings.Contains(name, "=") {
			return fmt.Errorf("want names with commas between them, not %.64q", name)
		}
		if err := addEnv(env, name); err != nil {
			return err
		}
	}
	return nil
}

// addEnv sets a variable of the ranks to what it is here if nothing else is
// said.
func addEnv(env *[]string, s string) error {
	name, _, ok := strings.Cut(s, "=")
	if name == "" {
		return fmt.Errorf("want NAME=VALUE or NAME")
	}
	if !ok {
		value, set := os.LookupEnv(name)
		if !set {
			return fmt.Errorf("%s is not set here", name)
		}
		s = name + "=" + value
	}
	return addPair(env, s)
}
