package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/kappactl/kappactl/internal/job"
)

const demoQuery = "SELECT url, sum(views)::bigint AS views, sum(total_ms)::bigint AS total_ms FROM pageviews_hourly GROUP BY url ORDER BY url"

// play takes the job through its life. Each step fails when what happens is not what is said.
func (d *demo) play(ctx context.Context) error {
	early, late := demoEvents(demoSeed, demoViews), demoEvents(demoSeed+1, demoLate)
	everything := slices.Concat(early, late)
	for name, events := range map[string][]pageview{"pageviews.ndjson": early, "late.ndjson": late} {
		if err := d.events(name, events); err != nil {
			return err
		}
	}
	scenes := []func(context.Context) error{
		func(ctx context.Context) error { return d.first(ctx, early) },
		func(ctx context.Context) error { return d.second(ctx, early) },
		func(ctx context.Context) error { return d.experiment(ctx, early) },
		func(ctx context.Context) error { return d.flips(ctx, early, everything) },
		func(ctx context.Context) error { return d.end(ctx, everything) },
		func(ctx context.Context) error { return d.lambda(ctx, everything) },
	}
	for _, scene := range scenes {
		if err := scene(ctx); err != nil {
			return err
		}
	}
	return nil
}

// first deploys the first version, which promotes itself.
func (d *demo) first(ctx context.Context, early []pageview) error {
	d.say("Page views wait in a Kafka topic: %d of them, in 4 partitions.", len(early))
	if err := d.run(ctx, 0, "dev", "load", "pageviews.ndjson", "--topic", "pageviews", "--partitions", "4"); err != nil {
		return err
	}
	d.say("A job is one file: where events come from, a query, and the view that serves its result.")
	if err := d.file("pageviews.yaml", demoJob("")); err != nil {
		return err
	}
	if err := d.run(ctx, 0, "check", "pageviews.yaml"); err != nil {
		return err
	}
	d.say("Deploying it replays the topic into a table, catches up, runs the checks, and makes the view read it.")
	if err := d.run(ctx, 0, "deploy", "pageviews.yaml"); err != nil {
		return err
	}
	return d.view(ctx, totals(early, 0))
}

// second deploys the second version beside the first.
func (d *demo) second(ctx context.Context, early []pageview) error {
	d.say("The code changes: views shorter than a second are bounces and no longer count.")
	if err := d.file("pageviews.yaml", demoJob(demoBounces())); err != nil {
		return err
	}
	d.say("Deploying it replays history into a table of its own, beside the live one. Readers see nothing of it yet.")
	if err := d.run(ctx, 0, "deploy", "pageviews.yaml"); err != nil {
		return err
	}
	if err := d.run(ctx, 0, "status", "pageviews"); err != nil {
		return err
	}
	if err := d.view(ctx, totals(early, 0)); err != nil {
		return err
	}
	return d.sideBySide(ctx, totals(early, 0), totals(early, bounce))
}

// flips promotes, rolls back and promotes again, with records arriving in between.
func (d *demo) flips(ctx context.Context, early, everything []pageview) error {
	d.say("One transaction makes the view read v2.")
	if err := d.run(ctx, 0, "promote", "pageviews"); err != nil {
		return err
	}
	if err := d.view(ctx, totals(early, bounce)); err != nil {
		return err
	}
	d.say("More page views arrive; both versions follow the topic.")
	if err := d.run(ctx, 0, "dev", "load", "late.ndjson", "--topic", "pageviews"); err != nil {
		return err
	}
	if err := d.viewSoon(ctx, totals(everything, bounce)); err != nil {
		return err
	}
	d.say("Was it a mistake? v1 has kept consuming, so going back loses nothing.")
	if err := d.run(ctx, 0, "rollback", "pageviews"); err != nil {
		return err
	}
	if err := d.view(ctx, totals(everything, 0)); err != nil {
		return err
	}
	d.say("What was rolled back is not deployed again by accident.")
	if err := d.run(ctx, job.ExitConflict, "deploy", "pageviews.yaml"); err != nil {
		return err
	}
	if err := d.run(ctx, 0, "deploy", "pageviews.yaml", "--again"); err != nil {
		return err
	}
	return d.view(ctx, totals(everything, bounce))
}

// end retires the first version and verifies the second against the log.
func (d *demo) end(ctx context.Context, everything []pageview) error {
	d.say("The old version is no longer needed.")
	if err := d.run(ctx, 0, "retire", "pageviews", "v1", "--now", "--yes"); err != nil {
		return err
	}
	if err := d.view(ctx, totals(everything, bounce)); err != nil {
		return err
	}
	d.say("And is all of that true? verify reads the whole topic once and compares.")
	if err := d.run(ctx, 0, "verify", "pageviews"); err != nil {
		return err
	}
	return d.run(ctx, 0, "deploy", "pageviews.yaml")
}

// events writes a file of page views.
func (d *demo) events(name string, events []pageview) error {
	f, err := os.Create(filepath.Join(d.dir, name))
	if err != nil {
		return fmt.Errorf("write sample data: %w", err)
	}
	if err := writeEvents(f, events); err != nil {
		_ = f.Close()
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
