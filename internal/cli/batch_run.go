package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kappactl/kappactl/batchlayer"
	"github.com/kappactl/kappactl/batchlayer/generation"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/speedlayer"
)

// batchProgressEvery is how often batch run --wait prints how far the run is.
const batchProgressEvery = 5 * time.Second

// batchResult is the output of batch run.
type batchResult struct {
	actResult
	Generation *batchlayer.Generation `json:"generation"` // null: none was begun
}

func runBatchRun(ctx context.Context, o batchOptions) error {
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	ref, err := o.version(ctx, c)
	if err != nil {
		return err
	}
	if err := c.needAgent(ctx, o.waitAgent.value); err != nil {
		return err
	}
	id, err := c.store.Ask(ctx, ledger.Request{
		Job: ref.Job, Number: ref.Number, Verb: ledger.BatchRun, By: o.by(),
		Args: ledger.Args{Full: o.full, AcceptChanges: o.acceptChanges, AcceptLostDeletes: o.acceptDeletes},
	})
	if err != nil {
		return err
	}
	result, err := o.follow(ctx, c, ref, id)
	if err != nil {
		return withNext(err, fmt.Sprintf("kappactl batch status %s   # the run goes on", ref.Job))
	}
	if result.ExitCode == job.ExitOK {
		return o.result(result, result.print)
	}
	return o.outcome(ctx, result, nil, result.refusal())
}

// follow waits until the run has begun or, with --wait, has ended.
func (o batchOptions) follow(ctx context.Context, c *client, ref job.Ref, request int64) (batchResult, error) {
	w, t := newPatience(o.app, c), troubles{batchOptions: o}
	out := batchResult{actResult: actResult{Job: ref.Job, Version: ref.Number.String(), Verb: ledger.BatchRun}}
	var said time.Time
	for {
		answer, err := c.store.Answer(ctx, request)
		if err == nil && answer != nil {
			out.ExitCode, out.Message, out.MessageCode, out.Next = answer.Code, answer.Text(), answer.Reason.Code, answer.Next
			out.Generation, err = batchlayer.Asked(ctx, c.pool, &speedlayer.Store{}, request)
			return out, err
		}
		if err == nil && (!o.wait || o.sys.Now().Sub(said) >= batchProgressEvery) {
			var g *batchlayer.Generation
			if g, err = batchlayer.Asked(ctx, c.pool, &speedlayer.Store{}, request); err == nil && g != nil {
				if !o.wait {
					begun := begunAs(ref, *g)
					out.Generation, out.Message, out.MessageCode = g, begun.Text(), begun.Code
					out.Next = "kappactl batch status " + string(ref.Job)
					return out, nil
				}
				said = o.sys.Now()
				o.progress("%s", batchProgress(*g))
			}
		}
		if err == nil {
			err = t.look(ctx, c, request)
		}
		if err := w.pause(ctx, answerEvery, err); err != nil {
			return out, err
		}
	}
}

// begunAs is the answer to who does not wait for a run that has begun.
func begunAs(ref job.Ref, g batchlayer.Generation) reason.Reason {
	if g.Accepted {
		return reason.BatchAccepted(ref, g.Generation)
	}
	return reason.BatchStarted(ref, g.Generation, g.Base)
}

// troubleEvery is how often a command that waits for a batch run reads why it does not continue.
const troubleEvery = 2 * time.Second

// troubles tells what keeps a batch run from going on, each cause once.
type troubles struct {
	batchOptions
	looked time.Time
	told   reason.Reason
}

func (t *troubles) look(ctx context.Context, c *client, request int64) error {
	now := t.sys.Now()
	if now.Sub(t.looked) < troubleEvery {
		return nil
	}
	t.looked = now
	why, err := batchlayer.Trouble(ctx, c.pool, request)
	if err != nil || why.Equal(t.told) {
		return err
	}
	if t.told = why; !why.IsZero() {
		t.progress("the run does not go on: %s", why.Text())
	}
	return nil
}

// batchProgress is how far a run is, in a line.
func batchProgress(g batchlayer.Generation) string {
	line := fmt.Sprintf("generation %d: %s", g.Generation, g.State)
	p := g.Progress
	if p == nil {
		return line
	}
	line = fmt.Sprintf("generation %d: %s", g.Generation, p.Step)
	if p.Step != "read" || p.Offsets == 0 {
		return line
	}
	line += fmt.Sprintf(", %d%%, %s of %s, %s", 100*(p.Offsets-p.OffsetsRemaining)/p.Offsets,
		render.Count(int64(p.SegmentsDone)), render.Plural(int64(p.Segments), "segment"), render.Plural(p.Records, "record"))
	if p.ETASeconds != nil {
		line += fmt.Sprintf(", %s left to read", render.Duration(time.Duration(*p.ETASeconds*float64(time.Second))))
	}
	return line
}

func runBatchList(ctx context.Context, o batchOptions) error {
	all, _, err := o.generations(ctx)
	if err != nil {
		return err
	}
	return o.result(all, func(w io.Writer) error { return printGenerations(w, o.style(), all) })
}

// generations are those of the command's version, the newest first.
func (o batchOptions) generations(ctx context.Context) ([]batchlayer.Generation, job.Ref, error) {
	c, err := o.client(ctx)
	if err != nil {
		return nil, job.Ref{}, err
	}
	defer c.Close()
	ref, err := o.version(ctx, c)
	if err != nil {
		return nil, ref, err
	}
	all, err := batchlayer.Generations(ctx, c.pool, &speedlayer.Store{}, ref)
	if err == nil && len(all) == 0 {
		err = &job.Refusal{Code: job.ExitUsage, Cause: reason.NotLambda(ref).Text(), Next: "kappactl status " +
			string(ref.Job)}
	}
	return all, ref, err
}

func printGenerations(w io.Writer, style render.Style, all []batchlayer.Generation) error {
	t := render.NewTable(">generation", "state", "kind", "cut", ">rows", ">bytes", ">changed", ">took", "detail")
	for _, g := range all {
		bytes := render.None
		if g.Bytes != nil {
			bytes = render.Bytes(*g.Bytes)
		}
		took := render.None
		if g.Seconds != nil {
			took = render.Duration(time.Duration(*g.Seconds * float64(time.Second)))
		}
		detail := g.Error
		if g.Progress != nil {
			_, detail, _ = strings.Cut(batchProgress(g), ": ")
		}
		if g.Trouble != "" {
			detail = strings.TrimPrefix(detail+"; "+g.Trouble, "; ")
		}
		t.Add(render.Text(fmt.Sprint(g.Generation)), render.Toned(toneOf(g.State), string(g.State)), render.Text(g.Kind()),
			render.Text(render.Time(&g.CutAt)),
			render.Text(render.CountOf(g.Rows)), render.Text(bytes), render.Text(render.CountOf(g.Changed)), render.Text(took),
			render.Text(render.Or(detail)))
	}
	return t.Write(w, style)
}

func toneOf(s generation.State) render.Tone {
	switch s {
	case generation.Live:
		return render.Good
	case generation.Failed:
		return render.Bad
	case generation.Building, generation.Kept, generation.Retired:
	}
	return render.Plain
}
