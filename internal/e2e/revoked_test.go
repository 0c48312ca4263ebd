package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
)

// TestTheCauseIsShownWhenALiveVersionLosesItsRights: a right that is revoked from the agent's role and row level security on the
// version's table are shown in status and doctor, and the version goes on when they are undone.
func TestTheCauseIsShownWhenALiveVersionLosesItsRights(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kafkatest.Fake(t))
	topic := kafkatest.Name("clicks")
	kafkatest.Topic(t, w.brokers, topic, 4, nil)
	produceClicks(t, w.brokers, topic, 0, 200)
	asAgent, asCLI, _ := w.roles(document(t, "rights.sql"))
	w.as(asAgent).serve()
	cli := w.as(asCLI)
	cli.ok("deploy", w.file("v1.yaml", fmt.Sprintf(clicksJob, topic, 0)))
	cli.caughtUp("clicks")
	agent := pg.Ident(w.name("agent"))
	for i, c := range []struct{ name, take, give, cause string }{
		{
			"rights", "REVOKE INSERT, UPDATE ON public.clicks__v1 FROM " + agent, "GRANT INSERT, UPDATE ON public.clicks__v1 TO " + agent,
			"permission denied for table clicks__v1",
		},
		{
			"row level security", "ALTER TABLE public.clicks__v1 ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
			"ALTER TABLE public.clicks__v1 DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY",
			"violates row-level security policy",
		},
	} {
		w.exec(c.take)
		produceClicks(t, w.brokers, topic, 200+100*i, 100)
		w.until(c.name+": status shows the cause", func() bool {
			status := cli.ok("status", "clicks", "-o", "json")
			return strings.Contains(status, `"reason_code": "commit_fails"`) && strings.Contains(status, c.cause)
		})
		if o := cli.run("doctor"); !strings.Contains(o.stdout, c.cause) {
			t.Errorf("%s: doctor: %s%s", c.name, o.stdout, o.stderr)
		}
		w.exec(c.give)
		cli.caughtUp("clicks")
	}
	cli.equal("clicks")
}
