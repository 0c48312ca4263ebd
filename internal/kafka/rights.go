package kafka

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kappactl/kappactl/internal/job"
)

// needed are the operations on a topic that reading it takes.
func needed() []kmsg.ACLOperation {
	return []kmsg.ACLOperation{kmsg.ACLOperationDescribe, kmsg.ACLOperationRead, kmsg.ACLOperationDescribeConfigs}
}

// mayRead refuses topics that the brokers will not let us read, before a reader stands in front of them. What a broker does
// not say (before Kafka 2.3) shows later.
func (a *Admin) mayRead(ctx context.Context, names []string) error {
	req := kmsg.NewPtrMetadataRequest()
	req.IncludeTopicAuthorizedOperations = true
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	var resp *kmsg.MetadataResponse
	err := a.call(ctx, func(ctx context.Context) (err error) {
		resp, err = req.RequestWith(ctx, a.cl)
		return err
	})
	if err != nil {
		return err
	}
	for _, t := range resp.Topics {
		if t.Topic == nil {
			continue
		}
		if errors.Is(kerr.ErrorForCode(t.ErrorCode), kerr.TopicAuthorizationFailed) {
			return a.denied(*t.Topic, needed(), kerr.TopicAuthorizationFailed)
		}
		if t.ErrorCode != 0 || t.AuthorizedOperations == math.MinInt32 {
			continue
		}
		var missing []kmsg.ACLOperation
		for _, op := range needed() {
			if t.AuthorizedOperations&(1<<op) == 0 {
				missing = append(missing, op)
			}
		}
		if len(missing) > 0 {
			return a.denied(*t.Topic, missing, kerr.TopicAuthorizationFailed)
		}
	}
	return nil
}

// denied is the refusal of a topic that this user may not use so.
func (a *Admin) denied(topic string, ops []kmsg.ACLOperation, err error) error {
	who, principal := "this client", "User:NAME"
	if l := loginOf(a.cl); l != nil {
		who, principal = fmt.Sprintf("Kafka user %q", l.user), "User:"+l.user
	}
	var words, flags []string
	for _, op := range ops {
		words, flags = append(words, operation(op)), append(flags, "--operation "+operation(op))
	}
	return &job.Refusal{
		Code: job.ExitUnreachable, Cause: fmt.Sprintf("%s may not %s topic %s", who, strings.Join(words, ", "), topic),
		Next: fmt.Sprintf("kafka-acls --bootstrap-server %s --add --allow-principal %s %s --topic %s", a.brokers[0], principal, strings.Join(flags, " "), topic),
		Err:  err,
	}
}

// operation is the name that kafka-acls knows.
func operation(op kmsg.ACLOperation) string {
	switch op { //nolint:exhaustive // those that needed lists
	case kmsg.ACLOperationRead:
		return "Read"
	case kmsg.ACLOperationDescribe:
		return "Describe"
	case kmsg.ACLOperationDescribeConfigs:
		return "DescribeConfigs"
	}
	return op.String()
}
