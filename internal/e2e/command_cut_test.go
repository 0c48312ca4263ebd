package e2e_test

import (
	"fmt"
	"testing"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

// askStatements are those of commands that ask for something, or look how far it is.
var askStatements = []struct {
	statement
	code int
	says string
}{
	{statement{"`deploy`: COMMIT of what it stages", []string{"INSERT INTO kappactl.version", "commit"}}, 11, "may have been written or not"},
	{statement{"`deploy`: looking how far it is", []string{"v.error AS error_reason", "kappactl.deployment d"}}, 0, ""},
	{statement{"`promote`: COMMIT of what it asks for", []string{"INSERT INTO kappactl.request", "commit"}}, 11, "may have been written or not"},
	{statement{"`promote`: looking for the answer", []string{"FROM kappactl.request"}}, 0, ""},
}

// TestCutUnderACommand loses the connection of a command, not the agent's, and runs the same command again.
func TestCutUnderACommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kafkatest.Fake(t))
	topic := clicksTopic(t, w.brokers, 2000)
	w.serve()
	w.ok("deploy", w.file("v1.yaml", fmt.Sprintf(clicksJob, topic, 0)))
	p := startProxy(t, hostOf(t, w.dsn))
	through := *w
	through.vars = []string{"KAPPACTL_DSN=" + p.dsn(w.dsn)}
	v2 := w.file("v2.yaml", fmt.Sprintf(clicksJob, topic, -1))
	commands := [][]string{{"deploy", v2}, {"deploy", w.file("v3.yaml", fmt.Sprintf(clicksJob, topic, -2))}, {"promote", "clicks", "v2"}, {"rollback", "clicks"}}
	for i, s := range askStatements {
		struck := p.arm(cutAfter, s.words...)
		o := through.run(commands[i]...)
		awaitStruck(t, struck, cutAfter, s.statement)
		toldOf(t, o, cutFromCommand, s.name)
		if o.code != 0 {
			again := through.run(commands[i]...)
			t.Logf("%v again: exit %d %s%s", commands[i], again.code, again.stdout, again.stderr)
		}
		w.caughtUp("clicks")
		w.equal("clicks")
	}
}
