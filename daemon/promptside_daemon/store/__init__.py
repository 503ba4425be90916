"""What the daemon remembers: a registry and a database per project; every line of its SQL is in here."""
