package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess"
)

// plan says what deploy would do, by the rules that Stage follows.
func (o deployOptions) plan(ctx context.Context, c *client, s reprocess.Staging) error {
	result := deployResult{Job: s.Spec.Job, DryRun: true}
	status, err := c.store.Status(ctx, s.Spec.Job)
	if err != nil && !errors.Is(err, reprocess.ErrNotFound) {
		return err
	}
	staged, err := c.store.Rehearse(ctx, s)
	if err != nil {
		return o.named(err)
	}
	result.Version, result.Phase = staged.Number.String(), job.Staged
	result.Message = fmt.Sprintf("would stage %s as its first version (%s) and replay from %s", s.Spec.Job, s.Hash, s.Spec.Replay.Start)
	if len(status.Versions) > 0 {
		result.Message = fmt.Sprintf("would stage %s %s (%s) beside %s and replay from %s", s.Spec.Job, staged.Number, s.Hash, liveOf(status), s.Spec.Replay.Start)
	}
	for _, v := range status.Versions {
		if v.Hash != s.Hash || v.Phase.Ended() {
			continue
		}
		result.Version, result.Phase = v.Version, v.Phase
		switch {
		case status.Live != nil && *status.Live == v.Version:
			result.Nothing = true
			result.Message = fmt.Sprintf("%s %s is live already: nothing to do", s.Spec.Job, v.Version)
			n, err := job.ParseNumber(v.Version)
			if err != nil {
				return err
			}
			if result.Applied, err = c.store.Changes(ctx, s, n); err != nil {
				return err
			}
			if len(result.Applied) > 0 {
				result.Nothing = false
				result.Message = fmt.Sprintf("%s %s would stay live; would be applied in place: %s", s.Spec.Job, v.Version, strings.Join(result.Applied, ", "))
			}
		case v.Phase == job.Standby:
			result.Message = fmt.Sprintf("would flip %s to %s, which is standby: nothing is replayed", s.Spec.Serve.View, v.Version)
		default:
			result.Resumed = true
			result.Message = fmt.Sprintf("would go on with %s %s, which is %s", s.Spec.Job, v.Version, v.Phase)
		}
		break
	}
	if result.Nothing && o.detailedExitCode {
		result.ExitCode = job.ExitNothing
	}
	if err := o.alone(result); err != nil {
		return err
	}
	return exitWith(result.ExitCode)
}

func liveOf(s reprocess.Status) string {
	if s.Live == nil {
		return "nothing live"
	}
	return *s.Live
}
