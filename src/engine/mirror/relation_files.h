// Whether the main file of an index still exists. DROP DATABASE and replay on a standby drop indexes without a message
// to the engine, but their files tell: they are gone, or empty until the next checkpoint removes them.
#pragma once

#include <filesystem>
#include <string>

#include "protocol/messages.h"

namespace pgwarp
{

class RelationFiles
{
public:
    // data_directory: of the server. In any other folder no file is known to be gone.
    explicit RelationFiles(const std::filesystem::path& data_directory);

    // Whether the main file of this index is absent or empty, for certain: a file that can't be examined is not gone.
    bool is_gone(const MirrorKey& key) const;

private:
    bool is_gone_from_tablespace(const MirrorKey& key, const std::string& file) const;

    std::filesystem::path data_directory_;
    std::string version_;  // prefix of folders in tablespaces: "PG_15_"; empty: no data directory
};

}  // namespace pgwarp
