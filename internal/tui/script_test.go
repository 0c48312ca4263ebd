package tui

import (
	"context"
	"errors"
	"sync"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/status"
)

// scripted is a Source that answers each look with the next of its details; the last one again and again. Guarded by mu.
type scripted struct {
	mu      sync.Mutex
	looks   int
	details []func() (Detail, error)
	acts    []Act
	answer  func(Act) (ledger.Answer, error)
}

func (s *scripted) next() (Detail, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := min(s.looks, len(s.details)-1)
	s.looks++
	return s.details[i]()
}

func (s *scripted) Jobs(context.Context) (Overview, error) {
	d, err := s.next()
	return Overview{Jobs: []status.Job{d.Status}, Agents: d.Agents}, err
}

func (s *scripted) Job(context.Context, job.Name) (Detail, error) { return s.next() }

func (s *scripted) Events(context.Context, job.Name) ([]Event, error) { return events(), nil }

func (s *scripted) Resolve(_ context.Context, name job.Name, _ ledger.Verb) (job.Ref, error) {
	return job.Ref{Job: name, Number: 2}, nil
}

func (s *scripted) Do(_ context.Context, a Act) (ledger.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acts = append(s.acts, a)
	if s.answer == nil {
		return ledger.Answer{Reason: reason.Refused("done")}, nil
	}
	return s.answer(a)
}

// with makes a detail whose candidate is in this phase and whose deployment is in this state.
func with(phase job.Phase, state job.DeploymentState, code *int) func() (Detail, error) {
	return func() (Detail, error) {
		v := catchingUpVersion(2)
		v.Phase, v.Verdict, v.Reason = phase, job.Lagging, "behind"
		if phase.Ended() {
			v.Error = "somebody aborted it"
		}
		d := detail(v, liveVersion(2))
		d.Deployment.State, d.Deployment.Phase, d.Deployment.ExitCode = state, phase, code
		if code != nil {
			d.Deployment.Message = "checks failed"
		}
		if state.Ended() {
			d.Deployment.EndedAt = ptr(noon())
			d.Status.Deployments = nil
		}
		return d, nil
	}
}

func refused() (Detail, error) { return Detail{}, errors.New("connection refused") }
