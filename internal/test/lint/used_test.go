package lint

import "testing"

func TestCheckUsed(t *testing.T) {
	tree := source(t,
		"internal/a/a.go", `package a
			type T struct{}
			func (T) Called() {}
			func (T) Wanted() {}
			func (T) Forgotten() {}
			func (T) String() string { return "" }
			type t struct{}
			func (t) Forgotten2() {}
			type Unused struct{}
			func Excepted() {}
			const Zero = 0
			func Here() {}
			var _ = Here
			func OnlyTested() {}`,
		"internal/a/a_test.go", `package a
			var _ = OnlyTested`,
		"internal/tests/a.go", `package tests
			func All() {}`,
		"pub/a.go", `package pub
			import "github.com/xwarp/xwarp/internal/a"
			type I interface{ Wanted() }
			func Anybody() { a.T{}.Called() }`,
	)
	expect(t, CheckUsed(tree, []string{"internal/tests", "internal/a.Excepted"}), "Forgotten is exported", "Unused is exported", "OnlyTested is exported")
}
