// Tables of results: a file of tab-separated values for each experiment, to which rows are appended.
#pragma once

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace pgwarp::bench
{

// The folder of the tables. The last two columns of every row tell where it was measured.
struct Output {
    std::string folder;
    std::string machine;
    std::string commit;
};

inline std::string cell(double value)
{
    char text[32];
    std::snprintf(text, sizeof(text), "%.5g", value);
    return text;
}
inline std::string cell(std::size_t value)
{
    return std::to_string(value);
}
inline std::string cell(std::uint32_t value)
{
    return std::to_string(value);
}
inline std::string cell(std::string value)
{
    return value;
}
inline std::string cell(const char* value)
{
    return value;
}

class Table
{
public:
    // `columns`: names, separated by blanks. Writes them where the file is new. Throws std::runtime_error.
    Table(const Output& output, const std::string& name, const std::string& columns) : output_(output)
    {
        const std::string path = output.folder + "/" + name + ".tsv";
        const bool is_new = !std::filesystem::exists(path) || std::filesystem::file_size(path) == 0;
        file_.open(path, std::ios::app);
        if (!file_) throw std::runtime_error("cannot write " + path);
        std::stringstream stream(columns + " machine commit");
        std::string line;
        for (std::string column; stream >> column; ++columns_) line += (columns_ > 0 ? "\t" : "") + column;
        if (is_new) file_ << line << std::endl;
    }

    template <class... Cells>
    void row(const Cells&... cells)
    {
        if (sizeof...(cells) + 2 != columns_) throw std::logic_error("a row of another width than its table");
        std::string line;
        ((line += cell(cells) + "\t"), ...);
        file_ << line << output_.machine << "\t" << output_.commit << std::endl;
        std::printf("  %s\n", line.c_str());
        std::fflush(stdout);
    }

private:
    const Output& output_;
    std::size_t columns_ = 0;
    std::ofstream file_;
};

}  // namespace pgwarp::bench
