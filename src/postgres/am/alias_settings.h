// The settings of aliases, as vector.so, which defines them, hands them to pgwarp.so: a rendezvous variable of this
// name points to them while vector.so is loaded.
#pragma once

namespace pgwarp
{

// Each 0 while it has its default: then pgwarp.recall chooses the effort.
struct AliasSettings {
    int ef_search;  // hnsw.ef_search
    int probes;     // ivfflat.probes
};
inline constexpr char alias_settings_variable[] = "pgwarp_alias_settings_1";

}  // namespace pgwarp
