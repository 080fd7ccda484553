package getopt

import (
	"fmt"
	"strings"
)

// Hints say what there is in place of options that other programs of the kind have: names
// of options, with blanks between them, have one text.
type Hints []struct{ Names, Text string }

// ByName returns the texts by the names.
func (h Hints) ByName() map[string]string {
	texts := map[string]string{}
	for _, row := range h {
		for name := range strings.FieldsSeq(row.Names) {
			texts[name] = row.Text
		}
	}
	return texts
}

// Explain says, in place of package flag's words about a flag that is not
// defined, what there is here for it: hints are by the names that other programs
// of the kind have. Other errors stay as they are.
func Explain(err error, hints map[string]string) error {
	if err == nil {
		return nil
	}
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !unknown {
		return err
	}
	if here, ok := hints[name]; ok {
		return fmt.Errorf("there is no option -%s: %s", name, here)
	}
	return fmt.Errorf("there is no option -%s", name)
}
