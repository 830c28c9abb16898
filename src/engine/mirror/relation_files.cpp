#include "engine/mirror/relation_files.h"

#include <sys/stat.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <system_error>

namespace pgwarp
{

namespace
{

constexpr std::uint32_t default_tablespace = 1663;  // pg_default, whose files lie in base/
constexpr std::uint32_t global_tablespace = 1664;   // pg_global, of no database

bool is_absent_or_empty(const std::filesystem::path& path)
{
    struct stat status {
    };
    if (::stat(path.c_str(), &status) == 0) return status.st_size == 0;
    return errno == ENOENT || errno == ENOTDIR;
}

// The name of the main fork's first segment: temporary tables carry the number of their session.
std::string file_name(const MirrorKey& key)
{
    std::ostringstream name;
    if (key.temp_backend >= 0) name << 't' << key.temp_backend << '_';
    name << key.relation;
    return name.str();
}

std::string folder_prefix(const std::filesystem::path& data_directory)
{
    std::ifstream file(data_directory / "PG_VERSION");
    std::string version;
    return std::getline(file, version) && !version.empty() ? "PG_" + version + "_" : "";
}

}  // namespace

RelationFiles::RelationFiles(const std::filesystem::path& data_directory)
    : data_directory_(data_directory), version_(folder_prefix(data_directory))
{
}

bool RelationFiles::is_gone(const MirrorKey& key) const
{
    if (version_.empty()) return false;
    const std::string file = file_name(key);
    if (key.tablespace == global_tablespace) return is_absent_or_empty(data_directory_ / "global" / file);
    if (key.tablespace != default_tablespace) return is_gone_from_tablespace(key, file);
    return is_absent_or_empty(data_directory_ / "base" / std::to_string(key.database) / file);
}

bool RelationFiles::is_gone_from_tablespace(const MirrorKey& key, const std::string& file) const
{
    // Beside the folder of this server's version there may be those of others, from before an upgrade.
    const auto tablespace = data_directory_ / "pg_tblspc" / std::to_string(key.tablespace);
    std::error_code error;
    std::filesystem::directory_iterator folder(tablespace, error);
    if (error) return error == std::errc::no_such_file_or_directory;
    for (; folder != std::filesystem::directory_iterator(); folder.increment(error)) {
        if (error) return false;
        if (!folder->path().filename().string().starts_with(version_)) continue;
        if (!is_absent_or_empty(folder->path() / std::to_string(key.database) / file)) return false;
    }
    return !error;
}

}  // namespace pgwarp
