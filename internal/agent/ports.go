package agent

import (
	"context"

	"github.com/kappactl/kappactl/internal/job"
)

// Runner does the work of one version; implemented by speedlayer.Engine.
type Runner interface {
	// Run works until the version needs no work any more or ctx ends: it then finishes the commit in hand, releases its
	// claims and returns. An error is tried again after a pause.
	Run(ctx context.Context, ref job.Ref) error
}

// Controller takes versions through their life; implemented by reprocess.Controller.
type Controller interface {
	// Control looks after a deployment under a claim until nothing is left to do or the claim is lost.
	Control(ctx context.Context, deployment, claim int64) error
	// Answer does what a request under a claim asks for.
	Answer(ctx context.Context, request, claim int64) error
}
