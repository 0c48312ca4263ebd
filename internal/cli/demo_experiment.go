package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kappactl/kappactl/abtest/policy"
)

// demoSubjects are readers of the demo; some read either version.
func demoSubjects() []string { return []string{"ann", "ben", "cleo", "dan", "eve", "finn"} }

// experiment lets half of the subjects read v2 before it is promoted.
func (d *demo) experiment(ctx context.Context, early []pageview) error {
	d.say("Before everybody reads it: half of the subjects do, in an experiment.")
	if err := d.run(ctx, 0, "ab", "start", "pageviews", "--weights", "v1=0.5,v2=0.5"); err != nil {
		return err
	}
	d.say("A subject reads the same version in every statement, and no statement reads both.")
	shown := [2]bool{}
	for _, subject := range demoSubjects() {
		arm := policy.ArmOf([]int{policy.Million / 2, policy.Million},
			policy.Bucket(policy.ArmSalt("pageviews", "1"), subject))
		if shown[arm] {
			continue
		}
		shown[arm] = true
		if err := d.subject(ctx, subject, totals(early, arm*bounce)); err != nil {
			return err
		}
	}
	if err := d.run(ctx, 0, "ab", "status", "pageviews"); err != nil {
		return err
	}
	d.say("Who names no subject reads the control. At the end the view is a plain one again.")
	if err := d.view(ctx, totals(early, 0)); err != nil {
		return err
	}
	if err := d.run(ctx, 0, "ab", "stop", "pageviews"); err != nil {
		return err
	}
	return d.view(ctx, totals(early, 0))
}

// subject records a subject, and shows what it reads, which has to be want.
func (d *demo) subject(ctx context.Context, subject string, want []demoTotal) error {
	if err := d.expose(ctx, subject); err != nil {
		return err
	}
	read := strings.Replace(demoQuery, "pageviews_hourly", "pageviews_hourly_for('"+subject+"')", 1)
	got, err := d.totals(ctx, read)
	if err != nil {
		return err
	}
	d.command(`psql "$DSN" -c "` + read + `"`)
	if err := d.show(got); err != nil {
		return err
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("%s reads %v and should read %v", subject, got, want)
	}
	return nil
}
