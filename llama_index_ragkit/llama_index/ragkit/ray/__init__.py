"""Building an index that is served from stores by many workers."""

from llama_index.ragkit.ray.build_shards import BuiltShard, Shard, build

__all__ = ["BuiltShard", "Shard", "build"]
