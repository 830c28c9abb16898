// Where the server keeps the main file of an index. No message tells the engine of every index that is dropped (DROP
// DATABASE and replay on a standby send none), but its file does: it is gone, or cut to nothing until the next
// checkpoint removes it.
#pragma once

#include <filesystem>
#include <string>

#include "protocol/messages.h"

namespace pgwarp
{

class RelationFiles
{
public:
    // data_directory: of the server. Any other folder is no data directory: then no file is known to be gone.
    explicit RelationFiles(const std::filesystem::path& data_directory);

    // Whether the main file of this index is absent or empty, for certain: a file that can't be looked at is not gone.
    bool is_gone(const MirrorKey& key) const;

private:
    bool is_gone_from_tablespace(const MirrorKey& key, const std::string& file) const;

    std::filesystem::path data_directory_;
    std::string version_;  // what folders of tablespaces begin with: "PG_15_"; empty: this is no data directory
};

}  // namespace pgwarp
