package schedule

import (
	"errors"

	"github.com/kappactl/kappactl/internal/job"
)

// Check reads the schedule of a job file. The error is job.Problems, with the place in the file.
func Check(spec *job.Spec) error {
	if spec.Batch == nil || spec.Batch.Schedule == "" {
		return nil
	}
	_, err := Parse(spec.Batch.Schedule)
	if f, wrong := errors.AsType[*Fault](err); wrong {
		return job.Problems{spec.ProblemAt("batch.schedule", f.Offset, "", f.Cause, f.Cure)}
	}
	return err
}
