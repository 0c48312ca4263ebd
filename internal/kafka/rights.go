package kafka

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kappactl/kappactl/internal/job"
)

// needed returns the topic operations that reading requires.
func needed() []kmsg.ACLOperation {
	return []kmsg.ACLOperation{kmsg.ACLOperationDescribe, kmsg.ACLOperationRead, kmsg.ACLOperationDescribeConfigs}
}

// mayRead returns an error for topics that the brokers do not allow this user to read, before reading starts. Brokers
// before Kafka 2.3 do not report rights; there the read fails later.
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

// denied returns the error for a topic on which the user lacks operations.
func (a *Admin) denied(topic string, ops []kmsg.ACLOperation, err error) error {
	var words, flags []string
	for _, op := range ops {
		words, flags = append(words, operation(op)), append(flags, "--operation "+operation(op))
	}
	return &job.Refusal{
		Code: job.ExitUnreachable, Cause: fmt.Sprintf("%s may not %s topic %s", a.who(), strings.Join(words, ", "), topic),
		Next: a.grant(strings.Join(flags, " "), "--topic "+topic), Err: err,
	}
}

// user returns the name by which the brokers know this client, by the default rule for certificates; empty for an
// anonymous client.
func (a *Admin) user() string {
	if l := loginOf(a.cl); l != nil {
		return l.user
	}
	return subjectOf(a.cl)
}

func (a *Admin) who() string {
	if user := a.user(); user != "" {
		return fmt.Sprintf("Kafka user %q", user)
	}
	return "this client"
}

// grant returns the command that allows operations on a resource. If brokers require TLS or a login, the command
// requires it too.
func (a *Admin) grant(operations, resource string) string {
	principal, admin := "User:"+cmp.Or(a.user(), "ANONYMOUS"), ""
	if strings.ContainsAny(principal, ", =") {
		principal = "'" + principal + "'"
	}
	if loginOf(a.cl) != nil || tlsOf(a.cl) != nil {
		admin = " --command-config admin.properties"
	}
	return fmt.Sprintf("kafka-acls --bootstrap-server %s%s --add --allow-principal %s %s %s", a.brokers[0], admin,
		principal, operations, resource)
}

// operation returns the name of an operation in kafka-acls.
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

// tlsOf returns the client's TLS configuration, or nil.
func tlsOf(cl *kgo.Client) *tls.Config {
	c, _ := cl.OptValue(kgo.DialTLSConfig).(*tls.Config)
	return c
}

// subjectOf returns the subject of the client's certificate in the form of Kafka's default user names; empty without a
// certificate.
func subjectOf(cl *kgo.Client) string {
	c := tlsOf(cl)
	if c == nil || c.GetClientCertificate == nil {
		return ""
	}
	pair, err := c.GetClientCertificate(&tls.CertificateRequestInfo{})
	if err != nil || len(pair.Certificate) == 0 {
		return ""
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return ""
	}
	return leaf.Subject.String()
}

// groupPrefix starts the names of the versions' consumer groups.
const groupPrefix = "kappactl."

// Lacking returns the rights that an agent needs and this user lacks, except those on topics, as sentences, and the
// commands that grant them. A broker that does not report rights, such as one without an authorizer, lacks nothing.
func (a *Admin) Lacking(ctx context.Context) (causes, cures []string, err error) {
	add := func(cause, operations, resource string) {
		causes, cures = append(causes, a.who()+" "+cause), append(cures, a.grant(operations, resource))
	}
	group := kmsg.NewPtrDescribeGroupsRequest()
	group.Groups, group.IncludeAuthorizedOperations = []string{groupPrefix + "doctor"}, true
	cluster := kmsg.NewPtrDescribeClusterRequest()
	cluster.IncludeClusterAuthorizedOperations = true
	err = a.call(ctx, func(ctx context.Context) error {
		groups, err := group.RequestWith(ctx, a.cl)
		denied := errors.Is(err, kerr.GroupAuthorizationFailed) // also for the lookup of the group's coordinator
		if err != nil && !answered(err) {
			return err
		}
		if err == nil && len(groups.Groups) > 0 {
			g := groups.Groups[0]
			denied = errors.Is(kerr.ErrorForCode(g.ErrorCode), kerr.GroupAuthorizationFailed) ||
				lacks(g.AuthorizedOperations, kmsg.ACLOperationRead, kmsg.ACLOperationDelete)
		}
		if denied {
			add("may not read and delete consumer groups: tools that show lag see no offsets",
				"--operation Read --operation Delete", "--group "+groupPrefix+" --resource-pattern-type prefixed")
		}
		c, err := cluster.RequestWith(ctx, a.cl)
		if err != nil {
			return err
		}
		if lacks(c.ClusterAuthorizedOperations, kmsg.ACLOperationDescribe) {
			add("may not describe the cluster: segments of a replay are not planned by their size on disk",
				"--operation Describe", "--cluster")
		}
		return nil
	})
	return causes, cures, err
}

// lacks reports whether a broker lists the allowed operations and some of ops are not among them.
func lacks(authorized int32, ops ...kmsg.ACLOperation) bool {
	if authorized == math.MinInt32 {
		return false
	}
	for _, op := range ops {
		if authorized&(1<<op) == 0 {
			return true
		}
	}
	return false
}
