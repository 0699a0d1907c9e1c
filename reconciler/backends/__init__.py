"""Where quotas live: brokers, ZooKeeper, snapshot files. Nothing of a client library leaks out of here."""
