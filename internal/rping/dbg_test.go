package rping
import ("testing";"fmt")
func TestDbg(t *testing.T) {
	r := newRig(t, 2)
	l := func(who string) func(string, ...any) { return func(f string, a ...any) { fmt.Printf("%v %s: %s\n", r.world.Now(), who, fmt.Sprintf(f, a...)) } }
	r.serve(Config{Logf: l("server")}, same)
	r.client(1, Config{Count: 2, Logf: l("client")}, pings(2))
	r.run()
}
