"""Workers that take each other to be on other machines: `second` finds rank 0 at the second of its addresses, `none`
at none of them."""

import sys

from runtime.collectives import mpi, watch

HOW = sys.argv[1]
watch._MEETING = 4.0
assert not [address for address in watch.own_addresses() if address.startswith("127.")]
# The first belongs to nobody (RFC 5737), the second to each machine itself.
watch.own_addresses = lambda: ["192.0.2.77", "127.0.0.2"][: 2 if HOW == "second" else 1]
mpi.Watch = lambda rank, size, is_one_host, broadcast: watch.Watch(rank, size, False, broadcast)
group = mpi.MpiGroup()
group.barrier()
print(f"rank {group.rank} is there")
