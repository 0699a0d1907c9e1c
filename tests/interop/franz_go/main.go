// Command interop reads and writes a cluster's client quotas with franz-go's kadm, in the JSON of `kafka-quotas describe`:
//
//	interop describe HOST:PORT              {"entities": [{"entity": {"user": null}, "quotas": {"producer_byte_rate": 1024}}]}
//	interop alter HOST:PORT < document      sets what the document has; a quota that is null is removed
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const deadline = 30 * time.Second

// A name that is null is the default entity; a type that is not there is not part of the entity.
type entry struct {
	Entity map[string]*string  `json:"entity"`
	Quotas map[string]*float64 `json:"quotas"`
}

type document struct {
	Entities []entry `json:"entities"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: interop describe|alter HOST:PORT")
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(args[1]))
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	admin := kadm.NewClient(client)
	switch args[0] {
	case "describe":
		return describe(ctx, admin)
	case "alter":
		return alter(ctx, admin)
	}
	return fmt.Errorf("unknown command %q", args[0])
}

func describe(ctx context.Context, admin *kadm.Client) error {
	found, err := admin.DescribeClientQuotas(ctx, false, nil)
	if err != nil {
		return err
	}
	all := document{Entities: []entry{}}
	for _, one := range found {
		row := entry{Entity: map[string]*string{}, Quotas: map[string]*float64{}}
		for _, part := range one.Entity {
			row.Entity[part.Type] = part.Name
		}
		for _, quota := range one.Values {
			row.Quotas[quota.Key] = &quota.Value
		}
		all.Entities = append(all.Entities, row)
	}
	return json.NewEncoder(os.Stdout).Encode(all)
}

func alter(ctx context.Context, admin *kadm.Client) error {
	var wanted document
	if err := json.NewDecoder(os.Stdin).Decode(&wanted); err != nil {
		return err
	}
	var alterations []kadm.AlterClientQuotaEntry
	for _, row := range wanted.Entities {
		var one kadm.AlterClientQuotaEntry
		for kind, name := range row.Entity {
			one.Entity = append(one.Entity, kadm.ClientQuotaEntityComponent{Type: kind, Name: name})
		}
		for key, value := range row.Quotas {
			op := kadm.AlterClientQuotaOp{Key: key, Remove: value == nil}
			if value != nil {
				op.Value = *value
			}
			one.Ops = append(one.Ops, op)
		}
		alterations = append(alterations, one)
	}
	results, err := admin.AlterClientQuotas(ctx, alterations)
	if err != nil {
		return err
	}
	for _, result := range results {
		if result.Err != nil {
			return fmt.Errorf("%v: %w: %s", result.Entity, result.Err, result.ErrMessage)
		}
	}
	return nil
}
