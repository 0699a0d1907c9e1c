"""Keys, certificates and logins as Kafka's and ZooKeeper's properties files give them, free of any client library."""
