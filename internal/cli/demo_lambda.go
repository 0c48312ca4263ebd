package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kappactl/kappactl/internal/devstack"
	"github.com/kappactl/kappactl/internal/job"
)

// demoMode makes the demo's job one of mode lambda.
const demoMode = "mode: lambda\n"

// demoFault makes generations of the demo's lambda version wrong: their tables lose the rows of one page.
const demoFault = `CREATE FUNCTION public.lose() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN RETURN CASE WHEN NEW.url <> '/login' THEN NEW END; END $$;
CREATE FUNCTION public.plant() RETURNS event_trigger LANGUAGE plpgsql AS $$ DECLARE t record; BEGIN
  FOR t IN SELECT * FROM pg_event_trigger_ddl_commands() WHERE object_identity ~ '__v3_g[0-9]+$' LOOP
    EXECUTE 'CREATE TRIGGER lose BEFORE INSERT ON ' || t.object_identity || ' FOR EACH ROW EXECUTE FUNCTION public.lose()';
  END LOOP; END $$;
CREATE EVENT TRIGGER plant ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION public.plant();
`

// lambda makes the job one of mode lambda, whose history is longer than the topic's, and leads it back.
func (d *demo) lambda(ctx context.Context, everything []pageview) error {
	right := totals(everything, bounce)
	if err := d.forget(ctx, len(everything)); err != nil {
		return err
	}
	d.say("Lambda is another word in the same file. It replays from the archive what the topic no longer has.")
	if err := d.file("pageviews.yaml", demoMode+demoJob(demoBounces())); err != nil {
		return err
	}
	if err := d.run(ctx, 0, "deploy", "pageviews.yaml", "--promote", "auto"); err != nil {
		return err
	}
	if err := d.view(ctx, right); err != nil {
		return err
	}
	d.say("A batch run computes all of it again, compares it with what readers see, and shows it.")
	if err := d.run(ctx, 0, "batch", "run", "pageviews", "--wait"); err != nil {
		return err
	}
	if err := d.refused(ctx, right); err != nil {
		return err
	}
	d.say("And back to kappa: the version before has kept consuming, too.")
	if err := d.run(ctx, 0, "rollback", "pageviews"); err != nil {
		return err
	}
	return d.view(ctx, right)
}

// forget waits until the archive has all and deletes the older half of the topic, as retention does.
func (d *demo) forget(ctx context.Context, records int) error {
	if err := d.archived(ctx, int64(records)); err != nil {
		return err
	}
	d.say("All of the topic is in the archive by now. Then retention deletes the older half of the topic.")
	if err := d.run(ctx, 0, "archive", "status"); err != nil {
		return err
	}
	return devstack.DeleteOlderHalf(ctx, d.brokers, "pageviews")
}

// archived waits until the archive holds that many records, at most twenty seconds.
func (d *demo) archived(ctx context.Context, records int64) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	limit, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		found, err := archivesOf(ctx, d.pool, "pageviews")
		if err != nil {
			return err
		}
		held := int64(0)
		for _, s := range found {
			held += s.Records
		}
		if held == records {
			return nil
		}
		select {
		case <-limit.Done():
			return fmt.Errorf("the archive holds %d of %d records", held, records)
		case <-tick.C:
		}
	}
}

// refused plants a fault in the batch layer, whose generation is refused, shown all the same, and rolled back.
func (d *demo) refused(ctx context.Context, right []demoTotal) error {
	d.say("A fault is planted: new generations lose the page /login. The run is refused, and readers keep what they have.")
	d.command(`psql "$DSN" -f fault.sql`)
	if err := os.WriteFile(filepath.Join(d.dir, "fault.sql"), []byte(demoFault), 0o600); err != nil {
		return fmt.Errorf("write the fault: %w", err)
	}
	if _, err := d.pool.Exec(ctx, demoFault); err != nil {
		return fmt.Errorf("plant the fault: %w", err)
	}
	if err := d.run(ctx, job.ExitChecks, "batch", "run", "pageviews", "--wait"); err != nil {
		return err
	}
	if err := d.view(ctx, right); err != nil {
		return err
	}
	d.say("Who wants it all the same says so, and is back in a moment when it was a mistake.")
	if err := d.run(ctx, 0, "batch", "run", "pageviews", "--wait", "--accept-changes"); err != nil {
		return err
	}
	if err := d.view(ctx, without(right, "/login")); err != nil {
		return err
	}
	if err := d.run(ctx, 0, "batch", "rollback", "pageviews", "1"); err != nil {
		return err
	}
	if err := d.view(ctx, right); err != nil {
		return err
	}
	return d.run(ctx, 0, "batch", "list", "pageviews")
}

// without are the totals of the other pages.
func without(all []demoTotal, url string) []demoTotal {
	var out []demoTotal
	for _, t := range all {
		if t.URL != url {
			out = append(out, t)
		}
	}
	return out
}
