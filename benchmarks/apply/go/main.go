// Batch brings a cluster to a file of wanted user quotas with as little as possible: one describe, the difference, alterations
// of 1,000 users a call. No validation, no reading back.
//
// Usage: batch BOOTSTRAP FILE, a line a user: name, then key=value, separated by tabs.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const usersACall = 1000

type quotas map[string]float64

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(bootstrap, file string) error {
	wanted, err := read(file)
	if err != nil {
		return err
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(bootstrap, ",")...))
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	ctx := context.Background()

	described, err := admin.DescribeClientQuotas(ctx, false, nil)
	if err != nil {
		return err
	}
	live := make(map[string]quotas, len(described))
	for _, one := range described {
		if len(one.Entity) != 1 || one.Entity[0].Type != "user" || one.Entity[0].Name == nil {
			continue
		}
		now := quotas{}
		for _, value := range one.Values {
			now[value.Key] = value.Value
		}
		live[*one.Entity[0].Name] = now
	}

	var changes []kadm.AlterClientQuotaEntry
	for name, want := range wanted {
		now := live[name]
		var ops []kadm.AlterClientQuotaOp
		for key, value := range want {
			if have, there := now[key]; !there || have != value {
				ops = append(ops, kadm.AlterClientQuotaOp{Key: key, Value: value})
			}
		}
		if len(ops) > 0 {
			user := name
			entity := kadm.ClientQuotaEntity{{Type: "user", Name: &user}}
			changes = append(changes, kadm.AlterClientQuotaEntry{Entity: entity, Ops: ops})
		}
	}
	for from := 0; from < len(changes); from += usersACall {
		altered, err := admin.AlterClientQuotas(ctx, changes[from:min(from+usersACall, len(changes))])
		if err != nil {
			return err
		}
		for _, one := range altered {
			if one.Err != nil {
				return fmt.Errorf("%v: %w", one.Entity, one.Err)
			}
		}
	}
	fmt.Println(len(changes))
	return nil
}

func read(file string) (map[string]quotas, error) {
	opened, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	wanted := map[string]quotas{}
	lines := bufio.NewScanner(opened)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "\t")
		want := quotas{}
		for _, field := range fields[1:] {
			key, text, _ := strings.Cut(field, "=")
			if want[key], err = strconv.ParseFloat(text, 64); err != nil {
				return nil, err
			}
		}
		wanted[fields[0]] = want
	}
	return wanted, lines.Err()
}
