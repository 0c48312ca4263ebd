package kafkatest

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Transaction is an open transaction of a producer. It is used from one goroutine.
type Transaction struct {
	cl *kgo.Client
}

// Begin opens a transaction with a transactional id of its own. A transaction that the test leaves open is aborted when
// the test ends.
func Begin(t testing.TB, brokers []string) *Transaction {
	t.Helper()
	cl := Client(t, brokers, kgo.TransactionalID(Name("txn")), kgo.TransactionTimeout(10*time.Minute))
	if err := cl.BeginTransaction(); err != nil {
		t.Fatalf("begin a transaction: %v", err)
	}
	return &Transaction{cl: cl}
}

// Produce appends records inside the transaction and waits until the broker has them.
func (x *Transaction) Produce(t testing.TB, records ...*kgo.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := x.cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatalf("produce in a transaction: %v", err)
	}
}

// End commits or aborts and begins the next transaction of the same producer. The last stable offset follows a moment
// later (AwaitStable).
func (x *Transaction) End(t testing.TB, commit kgo.TransactionEndTry) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := x.cl.EndTransaction(ctx, commit); err != nil {
		t.Fatalf("end a transaction: %v", err)
	}
	if err := x.cl.BeginTransaction(); err != nil {
		t.Fatalf("begin the next transaction: %v", err)
	}
}

// Committed appends values to a partition in one committed transaction.
func Committed(t testing.TB, brokers []string, topic string, partition int32, values ...string) {
	t.Helper()
	transact(t, brokers, topic, partition, kgo.TryCommit, values)
}

// Aborted appends values to a partition in one aborted transaction.
func Aborted(t testing.TB, brokers []string, topic string, partition int32, values ...string) {
	t.Helper()
	transact(t, brokers, topic, partition, kgo.TryAbort, values)
}

func transact(t testing.TB, brokers []string, topic string, partition int32, commit kgo.TransactionEndTry,
	values []string,
) {
	t.Helper()
	x := Begin(t, brokers)
	records := make([]*kgo.Record, len(values))
	for i, v := range values {
		records[i] = &kgo.Record{Topic: topic, Partition: partition, Value: []byte(v)}
	}
	x.Produce(t, records...)
	x.End(t, commit)
	x.cl.Close()
}
