package agent

import (
	"context"

	"github.com/kappactl/kappactl/internal/job"
)

// Runner does the work of one version; speedlayer.Engine implements it.
type Runner interface {
	// Run works until the version needs no more work or ctx ends. Then it finishes the current commit, releases its
	// claims and returns. After an error it is retried after a pause.
	Run(ctx context.Context, ref job.Ref) error
}
