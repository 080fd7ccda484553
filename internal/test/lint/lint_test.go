package lint

import (
	"os"
	"testing"
)

// repository loads the tree that this test is part of.
func repository(t *testing.T) *Tree {
	t.Helper()
	tree, err := Load(os.DirFS("../../.."))
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.Packages) < 10 {
		t.Fatalf("found only %d packages: the root of the repository is not ../../..", len(tree.Packages))
	}
	return tree
}

func TestRepository(t *testing.T) {
	tree := repository(t)
	laws := []struct {
		name  string
		check func() []Problem
	}{
		{"table", func() []Problem { return CheckTable(tree, Layers) }},
		{"imports", func() []Problem { return CheckImports(tree, Layers) }},
		{"unsafe", func() []Problem { return CheckUnsafe(tree, UnsafePackages) }},
		{"pure", func() []Problem { return CheckPure(tree, Layers) }},
		{"clock", func() []Problem { return CheckClock(tree, ClockPackages) }},
		{"quiet", func() []Problem { return CheckQuiet(tree, ExitPackages) }},
		{"state", func() []Problem { return CheckState(tree) }},
		{"size", func() []Problem { return CheckSize(tree, TooLong) }},
		{"doc", func() []Problem { return CheckDoc(tree) }},
		{"errors", func() []Problem { return CheckErrors(tree, ControlPackages) }},
		{"owners", func() []Problem { return CheckOwners(tree) }},
		{"text", func() []Problem { return CheckText(tree) }},
		{"tests", func() []Problem { return CheckTests(tree) }},
		{"fields", func() []Problem { return CheckFields(tree, TooManyFields) }},
		{"methods", func() []Problem { return CheckMethods(tree, TooManyMethods) }},
		{"words", func() []Problem { return CheckWords(tree) }},
		{"persons", func() []Problem { return CheckPersons(tree, Persons) }},
		{"used", func() []Problem { return CheckUsed(tree, TestOnly) }},
	}
	for _, law := range laws {
		t.Run(law.name, func(t *testing.T) {
			for _, p := range law.check() {
				t.Error(p)
			}
		})
	}
}

// The two seams of the design hold whatever else the table allows.
func TestLayers_seams(t *testing.T) {
	apart := map[string]string{"mpi": "iwarp", "mpi/internal/p2p": "iwarp", "iwarp": "internal/carrier/fabric", "iwarp/dgram": "internal/carrier/fabric"}
	for importer, imp := range apart {
		if why := refuse(Layers, rowOf(Layers, importer), importer, Module+"/"+imp); why == "" {
			t.Errorf("the table lets %s import %s: that is a seam of the design", importer, imp)
		}
	}
}
